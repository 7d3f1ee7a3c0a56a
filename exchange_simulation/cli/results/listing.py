"""`exchange results list`: a line for each folder, newest last, fitted to the terminal's width."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from exchange.unique import unique
from exchange.words import counted, printable
from exchange_simulation.cli.results.kind import ListedFolder
from exchange_simulation.cli.results.kinds import folders, kind_of
from exchange_simulation.launching.record.reading import UNFINISHED
from exchange_simulation.reports.exports import print_json
from exchange_simulation.reports.formats import has_enough_orders, is_number

LEAST_NAME = 12
"""Characters that a name keeps at least."""
NAME_END = 18
"""Characters at a name's end that tell one run from another, as zeromq-8000-7806a6."""
LEAST_WHAT = 6
"""Characters that the words in the column `what` keep at least."""
ENOUGH = 34
"""Characters for the words about a trial; a longer sentence is cut before figures or names are."""
ABSENT = "-"
SPARK_TABLES = "tables"
"""The folder that Spark makes in a results folder; it is no folder of a command's."""
TITLES = ("name", "local time", "status", "what")
FIGURES = ("over", "orders/s", "p50 us", "p99 us")


def show_list(results: Path, transport: str | None, status: str | None, last: int | None, as_json: bool) -> None:
    """Print the list; folders that no command of ours made are only counted."""
    kinds = {folder: kind_of(folder) for folder in folders(results)}
    listed = [kind.row(folder) for folder, kind in kinds.items() if kind]
    rows = sorted((replace(row, name=printable(row.name)) for row in listed), key=moment_of)
    chosen = rows
    if transport:
        chosen = [row for row in chosen if transport in row.transports]
    if status:
        chosen = [row for row in chosen if row.status == status]
    if last:
        chosen = chosen[-last:]
    if as_json:
        print_json([_as_json(row) for row in chosen])
    elif chosen:
        click.echo("\n".join(lines(chosen)))
    else:
        nothing = f"none of {counted(len(rows), 'runs and trials')} matches" if rows else "no run and no trial"
        click.echo(f"{results}: {nothing}", err=True)
    others = [folder for folder, kind in kinds.items() if kind is None and folder.name != SPARK_TABLES]
    if others:
        count = counted(len(others), "folders")
        click.echo(f"not listed: {count} in {results} that no exchange command made", err=True)


def _as_json(row: ListedFolder) -> dict[str, Any]:
    """The row as --json prints it; its interface calls the words `told`."""
    fields = asdict(row)
    words = fields.pop("words")
    return {**fields, "told": words}


def moment_of(row: ListedFolder) -> tuple[float, str]:
    """Sort by start; without a record, by the last change in the folder."""
    for moment in (row.started_at, row.last_written_at):
        if isinstance(moment, str):
            with contextlib.suppress(ValueError):
                return datetime.fromisoformat(moment).timestamp(), row.name
    return 0.0, row.name


@dataclass(frozen=True)
class Widths:
    """The widths of the columns of names, of what was run, and of figures or words, in characters."""

    name: int
    what: int
    body: int


def lines(rows: Sequence[ListedFolder]) -> list[str]:
    """A title, and a line for each row. A long name loses its beginning, other long words lose their end.

    Figures lose nothing: where there is no room for them, the time is left out.
    """
    columns = shutil.get_terminal_size().columns
    bodies = [body.rstrip() for body in _bodies(rows)]
    with_figures = [bodies[0], *(body for body, row in zip(bodies[1:], rows, strict=True) if has_figures(row))]
    figures_width = max(map(len, with_figures))
    status_width = max(len(row.status) for row in rows)
    least = LEAST_NAME + LEAST_WHAT + status_width + figures_width + 3
    if columns >= least + len("11-22 23:59 "):
        heads = _aligned([TITLES[1:3], *((started_of(row), row.status) for row in rows)])
    else:
        heads = _aligned([TITLES[2:3], *((row.status,) for row in rows)])
    names = [TITLES[0], *(row.name for row in rows)]
    whats = [TITLES[3], *(row.what for row in rows)]
    widths = _widths(names, whats, bodies, figures_width, columns - len(heads[0]) - 3)
    shown = []
    for name, head, what, body in zip(names, heads, whats, bodies, strict=True):
        name_cell = f"{_end_of(name, widths.name):<{widths.name}}"
        what_cell = f"{_beginning_of(what, widths.what):<{widths.what}}"
        line = f"{name_cell} {head} {what_cell} {_beginning_of(body, widths.body)}"
        shown.append(line.rstrip().replace("\n", "\\n"))
    return shown


def _widths(names: Sequence[str], whats: Sequence[str], bodies: Sequence[str], figures_width: int, room: int) -> Widths:
    """Divide `room` characters. Figures get what they need; then `what`, the name and the words, in this order."""
    longest_name = max(map(len, names))
    longest_what = max(map(len, whats))
    longest_body = max(map(len, bodies))
    body_width = max(figures_width, min(longest_body, ENOUGH))
    what_width = min(longest_what, max(LEAST_WHAT, room - body_width - min(longest_name, NAME_END)))
    name_width = min(longest_name, max(LEAST_NAME, room - body_width - what_width))
    return Widths(name_width, what_width, max(figures_width, room - what_width - name_width))


def _bodies(rows: Sequence[ListedFolder]) -> list[str]:
    """The titles of the figures, then each row's figures below them, or its words."""
    aligned = _aligned([FIGURES, *(figures_of(row) for row in rows if has_figures(row))], from_right=True)
    titles, *figures = aligned
    lines_of_figures = iter(figures)
    bodies = [titles]
    for row in rows:
        bodies.append(next(lines_of_figures) if has_figures(row) else words_of(row))
    return bodies


def has_figures(row: ListedFolder) -> bool:
    return row.reason is None and row.repeats is None and row.words is None


def figures_of(row: ListedFolder) -> tuple[str, str, str, str]:
    """The cells below FIGURES."""
    if row.orders_per_s == (None,):
        offered = "max"
    else:
        offered = "..".join(f"{orders_per_s:,.10g}" for orders_per_s in _ends(row))
    transports = ",".join(row.transports)
    return transports or ABSENT, offered or ABSENT, _time(row, "p50", row.p50_us), _time(row, "p99", row.p99_us)


def _time(row: ListedFolder, percentile: str, us: float | None) -> str:
    """A percentile that too few orders tell is absent."""
    return f"{us:,.0f}" if is_number(us) and has_enough_orders(percentile, row.orders_measured) else ABSENT


def words_of(row: ListedFolder) -> str:
    """Words for the progress of a trial, for the fault in a record, or the record's own words."""
    if row.words is not None:
        return row.words
    progress = "" if row.repeats is None else f"{row.runs} of {row.planned_runs} runs, "
    if row.status == UNFINISHED:
        return f"{progress}written {_ago(row)}"
    if row.repeats is None or row.reason is not None:
        return str(row.reason)
    if row.runs == row.planned_runs:
        progress = counted(row.repeats, "repeats") + ", "
    return f"{progress}{','.join(row.transports)} {_rates(row)}"


def _rates(row: ListedFolder) -> str:
    """The range of offered rates. For example: 1k..16k or 500 or 1k..16k,max"""
    words = []
    ends = "..".join(map(_short, _ends(row)))
    if ends:
        words.append(ends)
    if None in row.orders_per_s:
        words.append("max")
    return ",".join(words)


def _short(orders_per_s: float) -> str:
    """The rate in thousands from 1,000 on. For example: 16k"""
    return f"{orders_per_s / 1e3:.4g}k" if orders_per_s >= 1e3 else f"{orders_per_s:.4g}"


def _ends(row: ListedFolder) -> list[float]:
    """The lowest and the highest rate; one rate if both are equal, no rate if the rate is max."""
    offered = sorted(orders_per_s for orders_per_s in row.orders_per_s if is_number(orders_per_s))
    if not offered:
        return []
    return unique([offered[0], offered[-1]])


def started_of(row: ListedFolder) -> str:
    """The day and the time; the day and the year if the year is not this year."""
    try:
        at = datetime.fromisoformat(row.started_at or "").astimezone()
    except ValueError:
        return ABSENT
    return f"{at:%m-%d %H:%M}" if at.year == datetime.now().year else f"{at:%Y-%m-%d}"


def _ago(row: ListedFolder) -> str:
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
    other_side = ">" if from_right else "<"
    aligned = []
    for first, *others in table:
        cells = [f"{first:<{widths[0]}}"]
        for cell, width in zip(others, widths[1:], strict=True):
            cells.append(f"{cell:{other_side}{width}}")
        aligned.append(" ".join(cells))
    return aligned


def _end_of(text: str, width: int) -> str:
    return text if len(text) <= width else "…" + text[1 - width :]


def _beginning_of(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"
