"""Cells and figures as a reader wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from exchange.words import counted
from messaging.benchmark import Benchmark, Cell, Figures
from messaging.sizes import in_words
from reports.rounding import number

MOST_REASONS = 5


def point_in_words(point: Mapping[str, Any]) -> list[str]:
    """64 B; 4 pairs: what a point holds, each by its unit."""
    return [in_words(value) if name.endswith("_bytes") else _plain(name, value) for name, value in point.items()]


def _plain(name: str, value: Any) -> str:
    return counted(value, name) if isinstance(value, int) else f"{name} {value}"


def cell_in_words(cell: Cell) -> str:
    return ", ".join([cell.transport, *point_in_words(cell.point)])


def reasons_in_words(reasons: Sequence[str]) -> list[str]:
    """The first ones, and how many there are beside."""
    others = len(reasons) - MOST_REASONS
    return [*reasons[:MOST_REASONS], *([f"and {counted(others, 'more reasons')}"] if others > 0 else [])]


def figures_in_words(benchmark: Benchmark, figures: Figures) -> str:
    """Those of the table, with their units."""
    there = [column for column in benchmark.columns if column.name in figures]
    return ", ".join(f"{number(figures[column.name])} {column.title}" for column in there)


def short(value: float) -> str:
    """Three digits of what is large: 50.4 k, 3.07 M."""
    for least, factor, letter in ((999_500, 1e6, "M"), (9_995, 1e3, "k")):
        if value >= least:
            return f"{value / factor:.3g} {letter}"
    return number(value)


def short_interval(estimate: Mapping[str, Any]) -> str:
    """(1.42 M..5.83 M); empty where there is none."""
    return "" if estimate["low"] is None else f"({short(estimate['low'])}..{short(estimate['high'])})"


def titles_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of the columns for what the points hold: size, pairs, ..."""
    return [name.removesuffix("_bytes") for name in rows[0]["point"]] if rows else []


def values_in_words(point: Mapping[str, Any]) -> list[str]:
    """One for each of those columns."""
    return [in_words(value) if name.endswith("_bytes") else f"{value:,}" if isinstance(value, int) else str(value)
            for name, value in point.items()]  # fmt: skip
