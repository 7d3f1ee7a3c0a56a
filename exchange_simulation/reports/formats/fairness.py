"""How fairly an engine serves several gateways: a row for each, or for the best, the median and the worst of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from exchange.json_records import Record

MOST_ROWS = 8
"""With more gateways than this, only three of them are shown."""


@dataclass(frozen=True)
class FairnessRow:
    """One of several gateways at an engine."""

    title: str
    """The gateway's number; of many gateways with its place, as `3, median`."""
    status: str
    orders: int | None
    share: float | None
    """Its part of the orders that were answered to all."""
    times: dict[str, Any]
    """Completion times in us, from due time if orders were due; empty if nothing was measured."""

    @property
    def p99_us(self) -> float:
        """The 99th percentile; infinite if there is none, which is worse than any."""
        value = self.times.get("p99")
        return float("inf") if value is None else float(value)


def fairness_rows(gateways: Sequence[Record]) -> list[FairnessRow]:
    """Return the rows for the entries of run.json's `gateways`. Of many gateways, the order is by their p99."""
    rows = [_row(entry) for entry in gateways]
    if len(rows) <= MOST_ROWS:
        return rows
    by_p99 = sorted(rows, key=lambda row: row.p99_us)
    places = {"best": by_p99[0], "median": by_p99[len(by_p99) // 2], "worst": by_p99[-1]}
    return [replace(row, title=f"{row.title}, {place}") for place, row in places.items()]


def _row(entry: Record) -> FairnessRow:
    times = entry.get("completion_us") or {}
    orders = entry.get("orders") or {}
    return FairnessRow(
        title=str(entry["gateway"]),
        status=str(entry.get("status")),
        orders=orders.get("messages"),
        share=entry.get("share"),
        times=times.get("due") or times.get("handed_over") or {},
    )
