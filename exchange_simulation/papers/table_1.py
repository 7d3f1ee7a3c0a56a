"""Table 1 of the exchange's paper, packets with and without Nagle's algorithm, and its mean size of a message."""

from __future__ import annotations

from collections.abc import Iterator

from exchange.json_records import Record
from exchange_simulation.papers.beside_ours import BesideOurs
from exchange_simulation.reports.comparison.paper_values import ORDERS_OF_TABLE_1, TABLE_1, PaperRow
from exchange_simulation.reports.formats.estimates import median_text

MEAN_SIZE_RATE_PER_S = 8000.0
"""The rate at which our mean size of a message is read. With `--quick` its runs have the most orders."""


def table_1_beside_ours(record: Record) -> Iterator[BesideOurs]:
    """Yield the paper's mean size of a message, then three rows for each row of table 1, beside ours, in its order."""
    mean_bytes = _ours(record, "mean_message_bytes", MEAN_SIZE_RATE_PER_S, has_nagle=False)
    yield BesideOurs(
        f"weighted average size of a message, bytes, at {MEAN_SIZE_RATE_PER_S:,.0f} orders/s (5.2)",
        "around 9",
        mean_bytes,
    )
    for row in sorted(TABLE_1, key=lambda row: row.nagle == "on"):
        for title, paper, metric in _cells(row):
            ours = _ours(record, metric, float(row.orders_per_s), has_nagle=row.nagle == "on")
            yield BesideOurs(f"table 1: {title}, {row.orders_per_s:,} orders/s, Nagle {row.nagle}", paper, ours)


def _cells(row: PaperRow) -> Iterator[tuple[str, str, str]]:
    """Yield the title, the paper's value, and our metric of each cell of a row."""
    of_all = f"{row.packets_per_order:.2f} ({row.packets:,} of {ORDERS_OF_TABLE_1:,} orders)"
    yield "packets an order", of_all, "packets_per_order"
    yield "mean bytes of a packet", str(row.mean_bytes), "packet_bytes"
    yield "µs between packets", str(row.mean_gap_us), "packet_gap_us"


def _ours(record: Record, metric: str, orders_per_s: float, *, has_nagle: bool) -> str:
    """Our medians with their intervals, each with its arm's name if several arms have these settings."""
    arms = [
        arm
        for arm in record["arms"]
        if arm["settings"]["orders_per_s"] == orders_per_s
        and bool(arm["settings"]["nagle"]) == has_nagle
        and metric in arm["metrics"]
    ]
    if len(arms) == 1:
        return median_text(arms[0]["metrics"][metric])
    return "; ".join(f"{arm['contender']}, {arm['block']}: {median_text(arm['metrics'][metric])}" for arm in arms)
