"""The percentiles of completion times, declared once.

run.json, Spark's tables, the terminal, the pages, the objectives of `exchange capacity` and the Python API take theirs
from PERCENTILES, so a new percentile is a new line here. tests/exchange/test_declared_percentiles.py lists the files
that name a percentile for another reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

ORDERS_BEYOND = 10
"""With fewer orders beyond a percentile, the percentile says little more than the maximum."""


@dataclass(frozen=True)
class Percentile:
    """A percentile that every run has."""

    name: str
    """The name in records, tables and attributes: p999, as in due_p999_us."""
    percent: float

    @property
    def label(self) -> str:
        """The name that users see: p99.9."""
        return f"p{self.percent:g}"

    @property
    def least_orders(self) -> int:
        """The least number of orders of which ORDERS_BEYOND lie beyond this percentile."""
        return least_orders(self.percent)


def least_orders(percent: float) -> int:
    """Return the least number of orders of which ORDERS_BEYOND lie beyond this percentile."""
    share_beyond = 1 - percent / 100
    orders = round(ORDERS_BEYOND / share_beyond, 6)  # for 99.9 % the quotient is a little above 10,000
    return math.ceil(orders)


PERCENTILES = (
    Percentile("p50", 50.0),
    Percentile("p90", 90.0),
    Percentile("p99", 99.0),
    Percentile("p999", 99.9),
)

PERCENTS = {percentile.name: percentile.percent for percentile in PERCENTILES}
LABELS = {percentile.name: percentile.label for percentile in PERCENTILES}
LEAST_ORDERS = {percentile.name: percentile.least_orders for percentile in PERCENTILES}

FIGURES = {"mean": "mean", **LABELS, "max": "max"}
"""The labels of all figures of a set of times, by the name that a record has for them."""
