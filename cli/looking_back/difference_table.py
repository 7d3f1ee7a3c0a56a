"""Two records side by side in the terminal, in 78 columns: A the first, B the second."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.looking_back.fields import ABSENT
from exchange.json_records import Record
from reports.formats import condition
from reports.rounding import number
from reports.run.terminal import COLUMNS

USABLE = {"complete", "saturated"}
Cell = Callable[[str, Any], str]
"""Of a field and its value: the words."""


def bold(words: str) -> Text:
    return Text(words, style="bold")


def said(*lines: Padding | Table | Text | str) -> None:
    for line in lines:
        Console(width=COLUMNS, highlight=False, markup=False).print(line)


def sides(difference: Record, told: Callable[[Record], Iterable[str]]) -> None:
    """Who is A and who is B, and what must be known of each first."""
    for letter, side in (("A", "first"), ("B", "second")):
        head = difference[side]
        said(bold(f"{letter}  {head['name']}"))
        style = "" if head["status"] in USABLE else "bold red"
        said(*(Padding(Text(line, style=style), (0, 0, 0, 3)) for line in told(head)))


def columns(title: str, rows: Iterable[Record], cell: Cell, with_ratio: bool = False) -> None:
    """A row each: field, first and second, which may be absent."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column()
    for letter in ("A", "B", *(["B / A"] if with_ratio else [])):
        table.add_column(letter, justify="right")
    for row in rows:
        sides = [Text(cell(row["field"], row[side]) if side in row else ABSENT) for side in ("first", "second")]
        table.add_row(Text(row["field"]), *sides, *([_ratio(row)] if with_ratio else []))
    said(bold(title), table)


def _ratio(row: Record) -> str:
    if "ratio" not in row:
        return "-"
    return number(row["ratio"]) if row["ratio"] >= 100 else f"{row['ratio']:#.3g}"


def setting(field: str, value: Any) -> str:
    """A condition's value in words."""
    return condition(field.rpartition(".")[2], value)[1]
