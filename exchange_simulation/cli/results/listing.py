"""`exchange results list`: a line for each folder, newest last, fitted to the terminal's width."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from exchange.words import counted, printable
from exchange_simulation.cli.results.kind import Row
from exchange_simulation.cli.results.kinds import folders, kind_of
from exchange_simulation.launching.record.reading import UNFINISHED
from exchange_simulation.reports.exports import print_json
from exchange_simulation.reports.formats import is_number, is_told

LEAST_NAME, NAME_END, LEAST_WHAT = 12, 18, 6
"""Columns of a name at least; those that tell a run from another, as zeromq-8000-7806a6; and those of what it was."""
ENOUGH = 34
"""Columns for the words about a trial; a longer sentence is cut before figures or names are."""
ABSENT, SPARKS = "-", "tables"
TITLES = ("name", "local time", "status", "what")
FIGURES = ("over", "orders/s", "p50 us", "p99 us")


def show_list(results: Path, transport: str | None, status: str | None, last: int | None, as_json: bool) -> None:
    """Print the list; folders that no command of ours made are only counted."""
    kinds = {folder: kind_of(folder) for folder in folders(results)}
    found = (kind.row(folder) for folder, kind in kinds.items() if kind)
    rows = sorted((replace(row, name=printable(row.name)) for row in found), key=moment_of)
    chosen = [row for row in rows if transport in {None, *row.transports} and status in {None, row.status}]
    chosen = chosen[-last:] if last else chosen
    if as_json:
        print_json([_as_json(row) for row in chosen])
    elif chosen:
        click.echo("\n".join(lines(chosen)))
    else:
        nothing = f"none of {counted(len(rows), 'runs and trials')} matches" if rows else "no run and no trial"
        click.echo(f"{results}: {nothing}", err=True)
    if others := sum(kind is None and folder.name != SPARKS for folder, kind in kinds.items()):
        click.echo(f"not listed: {counted(others, 'folders')} in {results} that no exchange command made", err=True)


def _as_json(row: Row) -> dict[str, Any]:
    """The row as --json prints it; its interface calls the words `told`."""
    fields = asdict(row)
    words = fields.pop("words")
    return {**fields, "told": words}


def moment_of(row: Row) -> tuple[float, str]:
    """Sort by start; without a record, by the last change in the folder."""
    for moment in (row.started_at, row.last_written_at):
        with contextlib.suppress(TypeError, ValueError):
            return datetime.fromisoformat(moment).timestamp(), row.name  # type: ignore[arg-type]
    return 0.0, row.name


def lines(rows: Sequence[Row]) -> list[str]:
    """A title, and a line for each row. A long name loses its beginning, other long words lose their end.

    Figures lose nothing: where there is no room for them, the time is left out.
    """
    columns = shutil.get_terminal_size().columns
    bodies = [body.rstrip() for body in _bodies(rows)]
    figures = max(len(body) for body, row in zip(bodies, [None, *rows], strict=True) if not row or has_figures(row))
    least = LEAST_NAME + LEAST_WHAT + max(len(row.status) for row in rows) + figures + 3
    with_time = columns >= least + len("11-22 23:59 ")
    heads = _aligned([TITLES[1:3], *((started_of(row), row.status) for row in rows)])
    heads = heads if with_time else _aligned([TITLES[2:3], *((row.status,) for row in rows)])
    left = columns - len(heads[0]) - 3
    names, whats = [TITLES[0], *(row.name for row in rows)], [TITLES[3], *(row.what for row in rows)]
    longest_what, longest_name = max(map(len, whats)), max(map(len, names))
    body = max(figures, min(max(map(len, bodies)), ENOUGH))
    what_width = min(longest_what, max(LEAST_WHAT, left - body - min(longest_name, NAME_END)))
    name_width = min(longest_name, max(LEAST_NAME, left - max(figures, body) - what_width))
    body_width = max(figures, left - what_width - name_width)
    return [
        f"{_end_of(name, name_width):<{name_width}} {head} {_beginning_of(what, what_width):<{what_width}} "
        f"{_beginning_of(text, body_width)}".rstrip().replace("\n", "\\n")
        for name, head, what, text in zip(names, heads, whats, bodies, strict=True)
    ]


def _bodies(rows: Sequence[Row]) -> list[str]:
    """The body of each row: figures below their titles for runs, words for other rows."""
    aligned = iter(_aligned([FIGURES, *(figures_of(row) for row in rows if has_figures(row))], from_right=True))
    return [next(aligned), *(next(aligned) if has_figures(row) else words_of(row) for row in rows)]


def has_figures(row: Row) -> bool:
    return row.reason is None and row.repeats is None and row.words is None


def figures_of(row: Row) -> tuple[str, ...]:
    offered = "max" if row.orders_per_s == (None,) else "..".join(f"{rate:,.10g}" for rate in _ends(row))
    times = (_time(row, name, us) for name, us in (("p50", row.p50_us), ("p99", row.p99_us)))
    return ",".join(row.transports) or ABSENT, offered or ABSENT, *times


def _time(row: Row, percentile: str, us: float | None) -> str:
    """A percentile that too few orders tell is absent."""
    return f"{us:,.0f}" if is_number(us) and is_told(percentile, row.orders_measured) else ABSENT


def words_of(row: Row) -> str:
    """Words for the progress of a trial, for the fault in a record, or the record's own words."""
    if row.words is not None:
        return row.words
    progress = "" if row.repeats is None else f"{row.runs} of {row.planned_runs} runs, "
    if row.status == UNFINISHED:
        return f"{progress}written {_ago(row)}"
    if row.repeats is None or row.reason is not None:
        return str(row.reason)
    repeats = counted(row.repeats, "repeats") + ", "
    return f"{repeats if row.runs == row.planned_runs else progress}{','.join(row.transports)} {_rates(row)}"


def _rates(row: Row) -> str:
    """1k..16k, 500, max"""
    ends = "..".join(f"{rate / 1e3:.4g}k" if rate >= 1e3 else f"{rate:.4g}" for rate in _ends(row))
    return ",".join(filter(None, (ends, "max" if None in row.orders_per_s else "")))


def _ends(row: Row) -> list[float]:
    """The lowest and the highest rate; one rate if both are equal, no rate if the rate is max."""
    offered = sorted(rate for rate in row.orders_per_s if is_number(rate))
    return list(dict.fromkeys((offered[0], offered[-1]))) if offered else []


def started_of(row: Row) -> str:
    """The day and the time; the day and the year if the year is not this year."""
    try:
        at = datetime.fromisoformat(row.started_at or "").astimezone()
    except ValueError:
        return ABSENT
    return f"{at:%m-%d %H:%M}" if at.year == datetime.now().year else f"{at:%Y-%m-%d}"


def _ago(row: Row) -> str:
    if row.last_written_at is None:
        return "at an unknown time"
    seconds = (datetime.now().astimezone() - datetime.fromisoformat(row.last_written_at)).total_seconds()
    for unit, length_s in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length_s:
            return f"{seconds / length_s:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"


def _aligned(table: Sequence[Sequence[str]], from_right: bool = False) -> list[str]:
    """Align columns, with a blank between them; all but the first may be aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    sides = ["<", *(">" if from_right else "<" for _ in widths[1:])]
    return [" ".join(f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths, strict=True)) for row in table]


def _end_of(text: str, width: int) -> str:
    return text if len(text) <= width else "…" + text[1 - width :]


def _beginning_of(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"
