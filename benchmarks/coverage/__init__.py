"""How often our verdicts and intervals are right, in simulations whose truth is known."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.comparison import BenchmarkRow
from benchmarks.coverage import capacity, verdicts

PARTS = (capacity, verdicts)
"""Modules with a function `rows(repeats)`."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    for part in PARTS:
        yield from part.rows(repeats)
