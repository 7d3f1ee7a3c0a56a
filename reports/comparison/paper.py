"""The paper's printed values, of other hardware: a stock exchange over Apache Qpid, InfiniBand (IPoIB)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class PaperRow(NamedTuple):
    """A row of table 1: packets to and from the broker for 1,000,000 orders."""

    nagle: str
    orders_per_s: int
    packets: int
    mean_bytes: int
    mean_gap_us: int

    @property
    def per_order(self) -> float:
        return self.packets / 1_000_000


def has_its_roles(record: Mapping[str, Any]) -> bool:
    """Whether an arm has Nagle's algorithm on where the paper had it: at the broker alone."""
    return any(list(arm["settings"].get("nagle") or ()) == ["broker"] for arm in record["arms"])


TABLE_1 = (
    PaperRow("off", 1000, 5_097_597, 159, 196),
    PaperRow("on", 1000, 2_269_111, 359, 440),
    PaperRow("off", 8000, 4_775_966, 170, 26),
    PaperRow("on", 8000, 2_277_870, 358, 55),
)
FIGURES_8 = (
    "The paper, on IPoIB: at 8,000 orders/s Nagle at the broker took the mean from handing over from 9,300 to 7,000 us "
    "(figures 8b, 8c), and made it far worse at 1,000 and 2,000."
)
NOT_BESIDE = "The paper turned Nagle on at the broker alone. Its figures appear here with --roles broker over amqp."
IPOIB_MEAN_US = {"off": 9300, "on": 7000}
"""Mean completion at IPOIB_RATE by Nagle's algorithm: figures 8 (b) and (c), as the text has them."""
IPOIB_RATE = 8000.0
IPOIB_CPU_PERCENT = 35
"""The most CPU that any component used at any rate, from the text to figure 9."""
