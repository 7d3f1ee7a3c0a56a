"""What request-reply's rows say together, as its paper's tables 1 and 2 do: peaks, response time, what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from exchange.words import counted
from messaging.sizes import in_words
from reports.comparison.completion_figures import by
from reports.rounding import number

Row = dict[str, Any]
KB, RATE, RESPONSE = "kilobytes_per_s", "replies_per_s", "response_mean_us"


def peaks(rows: Sequence[Row]) -> list[str]:
    """A sentence for each transport, way and size; and one for what is kept of the rate where most lies preloaded."""
    measured = [row for row in rows if RATE in row["figures"]]
    grid = [row for row in measured if not row["point"]["preloaded"]]
    alike = by(grid, lambda row: f"{_who(row)}, {in_words(row['point']['size_bytes'])}")
    curves = by(measured, _who)
    return [*(_peak(who, own) for who, own in alike.items()), *_kept(curves)]


def _who(row: Row) -> str:
    return f"{row['transport']}, {row['point']['match']}"


def _figure(row: Row, name: str) -> float:
    return float(row["figures"][name]["median"])


def _peak(who: str, rows: Sequence[Row]) -> str:
    """Of one client, over threads, and of all cells; and what one thread alone waits."""
    of_one = [row for row in rows if row["point"]["clients"] == 1]
    said = [f"peak {_cell(rows)}", *([f"of one client {_cell(of_one)}"] if of_one else [])]
    alone = [row for row in of_one if row["point"]["threads"] == 1]
    said += [f"response time, 1 client, 1 thread: {number(1e3 / _figure(row, RATE))} ms" for row in alone]
    return f"{who}: {'; '.join(said)}"


def _cell(rows: Sequence[Row]) -> str:
    best = max(rows, key=lambda row: _figure(row, KB))
    where = f"{counted(best['point']['clients'], 'clients')}, {counted(best['point']['threads'], 'threads')}"
    return f"{number(_figure(best, KB))} kB/s ({where})"


def _kept(curves: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """From nothing preloaded to most, with the same clients, threads and size."""
    for who, rows in curves.items():
        last = max(rows, key=lambda row: int(row["point"]["preloaded"]))
        same = {**last["point"], "preloaded": 0}
        first = next((row for row in rows if row["point"] == same), None)
        if first is not None and last is not first:
            share = number(100 * _figure(last, RATE) / _figure(first, RATE))
            yield f"{who}: with {last['point']['preloaded']:,} preloaded, {share} % of the rate without"
