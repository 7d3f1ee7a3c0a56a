"""`exchange results list`: a line for each folder, newest last, fitted to the terminal's width."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import click

from exchange.words import counted, printable
from exchange_simulation.cli.results.kind import ListedFolder
from exchange_simulation.cli.results.kinds import folders, kind_of
from exchange_simulation.cli.results.row_cells import (
    FIGURES,
    NOISE_LEGEND,
    figures_of,
    has_figures,
    moment_of,
    started_of,
    status_of,
    words_of,
)
from exchange_simulation.reports.exports import print_json

LEAST_NAME = 12
"""Characters that a name keeps at least."""
NAME_END = 18
"""Characters at a name's end that tell one run from another, as zeromq-8000-7806a6."""
LEAST_KIND = 6
"""Characters that the words in the column `what` keep at least."""
TRIAL_WORDS_WIDTH = 34
"""Characters for the words about a trial; a longer sentence is cut before names are."""
TIME_WIDTH = len("11-22 23:59 ")
"""Characters of the column `local time`, with the blank behind it."""
CUT = "…"
CUT_LEGEND = "… cut; the end of a name is enough in commands. A pipe has everything"
UNBOUNDED = 10_000
"""The width of a list that nobody looks at in a terminal."""
SEPARATORS = 3
"""Blanks between the name, the status with its time, the kind, and the figures or words."""
NO_RESULTS = ("tables", "baselines")
"""Folders in a results folder that hold no result: Spark's tables, and kept baselines."""


def show_list(results: Path, transport: str | None, status: str | None, last: int | None, as_json: bool) -> None:
    """Print the list. Folders that no command of ours made are only counted."""
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
        shown = lines(chosen)
        click.echo("\n".join(shown))
        if any(CUT in line for line in shown):
            click.echo(CUT_LEGEND)
        if any(row.is_noisy for row in chosen):
            click.echo(NOISE_LEGEND)
    else:
        reason = f"none of {counted(len(rows), 'runs and trials')} matches" if rows else "no run and no trial"
        click.echo(f"{results}: {reason}", err=True)
    others = [folder for folder, kind in kinds.items() if kind is None and folder.name not in NO_RESULTS]
    if others:
        count = counted(len(others), "folders")
        click.echo(f"not listed: {count} in {results} that no exchange command made", err=True)


def _as_json(row: ListedFolder) -> dict[str, Any]:
    """Return the row as --json prints it. The field `words` is printed as `told`, the name of earlier versions."""
    fields = asdict(row)
    words = fields.pop("words")
    return {**fields, "told": words}


@dataclass(frozen=True)
class Widths:
    """The widths of three columns in characters: names, kinds, and figures or words."""

    name: int
    kind: int
    content: int


def lines(rows: Sequence[ListedFolder]) -> list[str]:
    """Return a title, and a line for each row. A long name loses its beginning, other long words lose their end.

    Figures lose nothing: if the terminal is too narrow for them, the time is left out.
    """
    columns = _columns()
    names = ["name", *(row.name for row in rows)]
    kinds = ["what", *(row.what for row in rows)]
    contents, figures_width = _figures_or_words(rows)
    status_width = max(len(status_of(row)) for row in rows)
    least_width = LEAST_NAME + status_width + LEAST_KIND + figures_width + SEPARATORS
    times_and_statuses = _times_and_statuses(rows, shows_time=columns >= least_width + TIME_WIDTH)
    space = columns - len(times_and_statuses[0]) - SEPARATORS
    widths = _widths(names, kinds, contents, figures_width, space)
    shown = []
    for name, time_and_status, kind, content in zip(names, times_and_statuses, kinds, contents, strict=True):
        name_cell = _end_of(name, widths.name).ljust(widths.name)
        kind_cell = _beginning_of(kind, widths.kind).ljust(widths.kind)
        line = f"{name_cell} {time_and_status} {kind_cell} {_beginning_of(content, widths.content)}"
        shown.append(line.rstrip().replace("\n", "\\n"))
    return shown


def _columns() -> int:
    """Return the width of the terminal, or of COLUMNS. A pipe has no width, so that names in it can be pasted."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return UNBOUNDED


def _times_and_statuses(rows: Sequence[ListedFolder], *, shows_time: bool) -> list[str]:
    """Return the titles, then each row's start and status, aligned; without the start if it is not shown."""
    cells: list[tuple[str, ...]]
    if shows_time:
        cells = [("local time", "status"), *((started_of(row), status_of(row)) for row in rows)]
    else:
        cells = [("status",), *((status_of(row),) for row in rows)]
    widths = _column_widths(cells)
    return [_joined(row_cells, widths, "<") for row_cells in cells]


def _figures_or_words(rows: Sequence[ListedFolder]) -> tuple[list[str], int]:
    """Return the titles of the figures, then each row's figures below them, or its words; and the figures' width."""
    widths = _column_widths([FIGURES, *(figures_of(row) for row in rows if has_figures(row))])
    titles = _joined(FIGURES, widths, ">")
    contents = [titles]
    for row in rows:
        if has_figures(row):
            contents.append(_joined(figures_of(row), widths, ">"))
        else:
            contents.append(words_of(row).rstrip())
    return contents, len(titles)


def _widths(
    names: Sequence[str], kinds: Sequence[str], contents: Sequence[str], figures_width: int, space: int
) -> Widths:
    """Divide `space` characters. Figures get what they need; then the kind, the name and the words, in this order."""
    longest_name = max(map(len, names))
    longest_kind = max(map(len, kinds))
    longest_content = max(map(len, contents))
    needed_by_content = max(figures_width, min(longest_content, TRIAL_WORDS_WIDTH))
    needed_by_name = min(longest_name, NAME_END)
    kind_width = _clamped(space - needed_by_content - needed_by_name, LEAST_KIND, longest_kind)
    name_width = _clamped(space - needed_by_content - kind_width, LEAST_NAME, longest_name)
    content_width = max(figures_width, space - kind_width - name_width)
    return Widths(name_width, kind_width, content_width)


def _clamped(width: int, least: int, longest: int) -> int:
    """Return the width, but `least` if it is smaller, and never more than the longest word of the column."""
    return min(max(width, least), longest)


def _column_widths(table: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*table, strict=True)]


def _joined(cells: Sequence[str], widths: Sequence[int], alignment: Literal["<", ">"]) -> str:
    """Join cells with a blank between them. The first is aligned to the left, the others as `alignment` says."""
    first, *others = cells
    padded = [f"{first:<{widths[0]}}"]
    for cell, width in zip(others, widths[1:], strict=True):
        padded.append(f"{cell:{alignment}{width}}")
    return " ".join(padded)


def _end_of(text: str, width: int) -> str:
    return text if len(text) <= width else CUT + text[1 - width :]


def _beginning_of(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)] + CUT
