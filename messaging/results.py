"""A cell's repeats in one row: medians with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from messaging.benchmark import Cell
from messaging.measuring import COMPLETE, Record, with_cpu
from messaging.words import cell_in_words

SEED = 1
"""Of the bootstrap."""


def row_of(cell: Cell, repeats: Sequence[Record]) -> dict[str, Any]:
    """Its figures are of the repeats whose answers were right."""
    counted = [with_cpu(repeat, cell.has_broker) for repeat in repeats if repeat["status"] == COMPLETE]
    names = dict.fromkeys(name for figures in counted for name in figures)
    return {
        "transport": cell.transport,
        "point": dict(cell.point),
        "words": cell_in_words(cell),
        "figures": {name: _estimate([figures[name] for figures in counted if name in figures]) for name in names},
        "repeats": list(repeats),
    }


def _estimate(values: list[float]) -> dict[str, Any]:
    from exchange.estimates import median

    found = median(values, SEED)
    return {"median": found.value, "low": found.low, "high": found.high, "n": len(values)}
