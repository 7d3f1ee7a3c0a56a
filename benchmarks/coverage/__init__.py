"""How often what we print is right, in simulations of which the truth is known: verdicts and intervals."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.comparison import BenchmarkRow
from benchmarks.coverage import capacity, verdicts

PARTS = (capacity, verdicts)
"""Modules with a `rows(repeats)` of their own."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    for part in PARTS:
        yield from part.rows(repeats)
