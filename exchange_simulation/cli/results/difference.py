"""Compares two records: finds fields that differ, prints them at the terminal's width. A is the first record.

In the context `parts_added_to`, parts go into a list, from which a page is made, and not to the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, NamedTuple

from rich.padding import Padding
from rich.text import Text

from exchange.json_records import Record, section
from exchange.unique import unique
from exchange_simulation.experiments.trials.conditions import DIFFERS_BY_RUN
from exchange_simulation.launching.notices import holding
from exchange_simulation.reports.formats.numbers import number_text
from exchange_simulation.reports.formats.settings import condition_in_words
from exchange_simulation.reports.tables import figure_column, key_column, plain_table, terminal, words_column

ABSENT = "absent"
USABLE = {"complete", "saturated"}
Parts = Mapping[str, tuple[str, ...] | None]
"""Parts of a record, and which of their fields are compared; None stands for all."""
Cell = Callable[[str, Any], str]
"""Words for a field's value, from the field's name and the value."""


class Part(NamedTuple):
    """A part of a shown difference: a sentence; a title with lines below it; or a title with the rows of a table."""

    words: str
    lines: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


_shown: ContextVar[list[Part] | None] = ContextVar("shown", default=None)


def parts_added_to(parts: list[Part]) -> AbstractContextManager[None]:
    """Return a context in which each part is added to the list, and not printed."""
    return holding(_shown, parts)


def differing(
    first: Mapping[str, Any], second: Mapping[str, Any], prefix: str = "", names: Iterable[str] | None = None
) -> Iterator[Record]:
    """Yield {field, first, second} for each field that differs. A value that is absent is left out.

    `names` are the fields to compare; None stands for all that either side has.
    """
    if names is None:
        names = unique([*first, *second])
    for name in names:
        values = {}
        if name in first:
            values["first"] = first[name]
        if name in second:
            values["second"] = second[name]
        if len(values) == 1 or values.get("first") != values.get("second"):
            yield {"field": f"{prefix}{name}", **values}


def all_fields_of(*parts: str) -> Parts:
    """Return these parts, of which all fields are compared."""
    return dict.fromkeys(parts)


def differing_parts(first: Record, second: Record, parts: Parts) -> Iterator[Record]:
    """Yield the differences in these parts, without the fields that differ between any two runs."""
    for part, names in parts.items():
        for row in differing(section(first, part), section(second, part), names=names):
            if (part, row["field"]) not in DIFFERS_BY_RUN:
                yield {**row, "field": f"{part}.{row['field']}"}


def print_lines(*sentences: str) -> None:
    for sentence in sentences:
        _show(Part(sentence))


def print_heads(difference: Record, lines_of: Callable[[Record], Iterable[str]]) -> None:
    """Print which record is A and which is B, each with lines about it; those of an unusable record are red."""
    for letter, side in (("A", "first"), ("B", "second")):
        head = difference[side]
        style = "" if head["status"] in USABLE else "bold red"
        _show(Part(f"{letter}  {head['name']}", tuple(lines_of(head))), style)


def setting_words(field: str, value: Any) -> str:
    """Return a condition's value in words.

    `field` is the condition's path in the record, with the arms that have it where they are not all.
    For example: settings.nagle of tcp at 1,000 orders/s
    """
    path = field.partition(" of ")[0]
    name = path.rpartition(".")[2]
    _, words = condition_in_words(name, value)
    return words


def print_rows(title: str, rows: Iterable[Record], cell: Cell = setting_words, with_ratio: bool = False) -> None:
    """Print a row for each field: its first value and its second, either of which may be absent."""
    columns = ["", "A", "B"]
    if with_ratio:
        columns.append("B / A")
    cells = []
    for row in rows:
        line = [row["field"]]
        for side in ("first", "second"):
            line.append(cell(row["field"], row[side]) if side in row else ABSENT)
        if with_ratio:
            line.append(_ratio(row))
        cells.append(tuple(line))
    _show(Part(title, columns=tuple(columns), rows=tuple(cells)))


def _show(part: Part, style: str = "") -> None:
    """Add the part to the list that collects them, or print it. Only a table of figures has a column of ratios."""
    collected = _shown.get()
    if collected is not None:
        collected.append(part)
        return
    is_title = bool(part.lines or part.columns)
    terminal().print(Text(part.words, style="bold" if is_title else ""))
    for line in part.lines:
        terminal().print(Padding(Text(line, style=style), (0, 0, 0, 3)))
    if part.columns:
        kind_of_column = figure_column if len(part.columns) > 3 else words_column
        table = plain_table(key_column(), *(kind_of_column(title) for title in part.columns[1:]))
        for row in part.rows:
            table.add_row(*row)
        terminal().print(table)


def _ratio(row: Record) -> str:
    if "ratio" not in row:
        return "-"
    return number_text(row["ratio"]) if row["ratio"] >= 100 else f"{row['ratio']:#.3g}"
