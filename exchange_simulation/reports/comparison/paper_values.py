"""The values that the paper printed, of other hardware: a stock exchange over Apache Qpid, InfiniBand (IPoIB)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ORDERS_OF_TABLE_1 = 1_000_000


@dataclass(frozen=True)
class PaperRow:
    """A row of table 1: packets to and from the broker for ORDERS_OF_TABLE_1 orders."""

    nagle: str
    orders_per_s: int
    packets: int
    mean_bytes: int
    mean_gap_us: int

    @property
    def packets_per_order(self) -> float:
        return self.packets / ORDERS_OF_TABLE_1


TABLE_1 = (
    PaperRow(nagle="off", orders_per_s=1000, packets=5_097_597, mean_bytes=159, mean_gap_us=196),
    PaperRow(nagle="on", orders_per_s=1000, packets=2_269_111, mean_bytes=359, mean_gap_us=440),
    PaperRow(nagle="off", orders_per_s=8000, packets=4_775_966, mean_bytes=170, mean_gap_us=26),
    PaperRow(nagle="on", orders_per_s=8000, packets=2_277_870, mean_bytes=358, mean_gap_us=55),
)
FIGURES_8_IN_WORDS = (
    "The paper, on IPoIB: at 8,000 orders/s Nagle at the broker took the mean from handing over from 9,300 to 7,000 us "
    "(figures 8b, 8c), and raised it drastically at 1,000 and 2,000. On 1 GigE it slightly worsened completion (7)."
)
NOT_COMPARABLE = "The paper turned Nagle on at the broker alone. Its figures appear here with --roles broker over amqp."
IPOIB_MEAN_US = {"off": 9300, "on": 7000}
"""Mean completion at IPOIB_RATE by Nagle's algorithm: figures 8 (b) and (c), as the text has them."""
IPOIB_RATE = 8000.0
IPOIB_CPU_PERCENT = 35
"""The most CPU that any component used at any rate, from the text to figure 9."""


def has_nagle_at_broker_alone(comparison: Mapping[str, Any]) -> bool:
    """Return whether an arm has Nagle's algorithm on where the paper had it: at the broker alone."""
    return any(list(arm["settings"].get("nagle") or ()) == ["broker"] for arm in comparison["arms"])
