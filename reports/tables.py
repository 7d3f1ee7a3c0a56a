"""Tables in the terminal: columns without lines, set apart by blanks."""

from __future__ import annotations

from typing import Literal

from rich.table import Column, Table


def plain_table(*columns: Column | str, gap: int = 2, header: bool = True) -> Table:
    """A table with `gap` blanks after each column. A column given as a plain title holds figures on one line."""
    shaped = (column if isinstance(column, Column) else right(column, wrap=False) for column in columns)
    return Table(*shaped, box=None, pad_edge=False, padding=(0, gap, 0, 0), show_header=header)


def left(title: str = "", *, wrap: bool = True, overflow: Literal["ellipsis", "fold"] = "ellipsis") -> Column:
    """A column of words."""
    return Column(title, no_wrap=not wrap, overflow=overflow)


def right(title: str, *, wrap: bool = True, least: int | None = None) -> Column:
    """A column of figures, at least `least` characters wide."""
    return Column(title, justify="right", no_wrap=not wrap, min_width=least)
