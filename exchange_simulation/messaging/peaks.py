"""Rows of request-reply summed up: its peaks, and sentences about them.

A row is a measured cell: its transport, its point, and the median of each figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from exchange.grouping import grouped
from exchange.words import counted
from exchange_simulation.messaging.point import MAX, NETWORK, RATE, size_in_words
from exchange_simulation.reports.formats.numbers import number_text

PEAK = "peak_kilobytes_per_s"
"""The figure of a peak's row."""
NOTE = "note"
"""The field of a peak's row with the threads of one client, in brackets, as table 4 prints them."""
OF_ONE_CLIENT = "of one client"
OF_ALL_CLIENTS = "of all clients"
KILOBYTES_PER_S = "kilobytes_per_s"
REPLIES_PER_S = "replies_per_s"
Row = dict[str, Any]


def summary_sentences(rows: Sequence[Row]) -> list[str]:
    """Sum rows up as the paper's tables 1 and 2 do.

    The sentences give peaks; the response time; the rate with preloaded messages, in % of the rate without them; and
    the gain of threads that do not wait for replies.
    """
    measured = [row for row in rows if REPLIES_PER_S in row["figures"]]
    paper_rows = [row for row in measured if _is_measured_as_in_paper(row)]
    peak_sentences = [
        _peak_sentence(series, rows_of_series)
        for series, rows_of_series in grouped(paper_rows, _series_and_size).items()
    ]
    return [*peak_sentences, *_preloading_sentences(grouped(measured, _series)), *_not_waiting_sentences(measured)]


def peaks_by_size(rows: Sequence[Row]) -> list[Row]:
    """A row for the peak of one client and a row for the peak of all, for each size, as in tables 4 and 5."""
    paper_rows = [row for row in rows if KILOBYTES_PER_S in row["figures"] and _is_measured_as_in_paper(row)]
    peaks: list[Row] = []
    for rows_of_series in grouped(paper_rows, _series_and_size).values():
        rows_of_one_client = [row for row in rows_of_series if row["point"]["clients"] == 1]
        if rows_of_one_client:
            peaks.append(_peak_row(OF_ONE_CLIENT, rows_of_one_client))
        peaks.append(_peak_row(OF_ALL_CLIENTS, rows_of_series))
    return peaks


def _is_measured_as_in_paper(row: Row) -> bool:
    """Nothing was preloaded, each thread waited for its reply, and asked again at once: at a rate nothing peaks."""
    point = row["point"]
    return not point["preloaded"] and point.get("ahead", 1) == 1 and point.get(RATE, MAX) == MAX


def _peak_row(whose_peak: str, rows: Sequence[Row]) -> Row:
    best = _best_row(rows)
    point = {"peak": whose_peak}
    for name in ("match", "size_bytes", NETWORK):
        if name in best["point"]:
            point[name] = best["point"][name]
    figures = {PEAK: best["figures"][KILOBYTES_PER_S]}
    note = f"({best['point']['threads']})" if whose_peak == OF_ONE_CLIENT else ""
    return {"transport": best["transport"], "point": point, "figures": figures, NOTE: note}


def _best_row(rows: Sequence[Row]) -> Row:
    return max(rows, key=lambda row: _median(row, KILOBYTES_PER_S))


def _series(row: Row) -> str:
    """The transport, the way to find replies, and the network if there are several."""
    names = [row["transport"], row["point"]["match"], row["point"].get(NETWORK)]
    return ", ".join(name for name in names if name)


def _series_and_size(row: Row) -> str:
    return f"{_series(row)}, {size_in_words(row['point']['size_bytes'])}"


def _median(row: Row, figure: str) -> float:
    return float(row["figures"][figure]["median"])


def _peak_sentence(series: str, rows: Sequence[Row]) -> str:
    """The peak of all rows, the peak of one client, and the response time of one client with one thread."""
    rows_of_one_client = [row for row in rows if row["point"]["clients"] == 1]
    clauses = [f"peak {_peak_in_words(rows)}"]
    if rows_of_one_client:
        clauses.append(f"of one client {_peak_in_words(rows_of_one_client)}")
    for row in rows_of_one_client:
        if row["point"]["threads"] == 1:
            response_ms = 1e3 / _median(row, REPLIES_PER_S)
            clauses.append(f"response time, 1 client, 1 thread: {number_text(response_ms)} ms")
    return f"{series}: {'; '.join(clauses)}"


def _peak_in_words(rows: Sequence[Row]) -> str:
    best = _best_row(rows)
    cell = f"{counted(best['point']['clients'], 'clients')}, {counted(best['point']['threads'], 'threads')}"
    return f"{number_text(_median(best, KILOBYTES_PER_S))} kB/s ({cell})"


def _preloading_sentences(rows_by_series: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Compare the row with the most preloaded messages with the row without any, for the same clients and size."""
    for series, rows in rows_by_series.items():
        most_preloaded = max(rows, key=lambda row: int(row["point"]["preloaded"]))
        if not most_preloaded["point"]["preloaded"]:
            continue
        point_without = {**most_preloaded["point"], "preloaded": 0}
        without = next((row for row in rows if row["point"] == point_without), None)
        if without is not None:
            percent = number_text(100 * _median(most_preloaded, REPLIES_PER_S) / _median(without, REPLIES_PER_S))
            preloaded = most_preloaded["point"]["preloaded"]
            yield f"{series}: with {preloaded:,} preloaded, {percent} % of the rate without"


def _not_waiting_sentences(rows: Sequence[Row]) -> Iterator[str]:
    """Compare the peak of threads that do not wait for replies with the peak of threads that do, for each size.

    Only rows of a benchmark with `--ahead` have the key "ahead"; other rows are left out, since they may have been
    measured with other numbers of clients and threads.
    """
    for series, rows_of_series in grouped(rows, _series_and_size).items():
        with_ahead = [row for row in rows_of_series if "ahead" in row["point"]]
        not_waiting = [row for row in with_ahead if row["point"]["ahead"] > 1]
        waiting = [row for row in with_ahead if row["point"]["ahead"] == 1]
        if not_waiting and waiting:
            best_not_waiting = max(_median(row, REPLIES_PER_S) for row in not_waiting)
            best_waiting = max(_median(row, REPLIES_PER_S) for row in waiting)
            times = number_text(best_not_waiting / best_waiting)
            yield f"{series}: {times} times the replies/s where threads do not wait for their replies"
