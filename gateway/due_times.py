"""When orders are due, in ns since the start: one class a kind of arrival. docs/workload.md has the formulas.

Whole numbers and correctly rounded arithmetic alone, so that every machine has the same due times.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]

NEVER_NS = 2**62


class DueTimes(Protocol):
    """Knows how far it has come."""

    at_once: int
    """The most orders that are due at the same time."""

    def write(self, due: Longs) -> None:
        """Those of the next len(due) orders, none before the last one's."""


class Periodic:
    """`burst` orders at once, and the next so many after as many periods: order i at (i - 1) periods, rounded down."""

    def __init__(self, period_ns: float, burst: int = 1) -> None:
        self._period_ns, self.at_once = period_ns, burst
        self._written = 0

    def write(self, due: Longs) -> None:
        earlier = np.arange(self._written, self._written + len(due))
        if self.at_once > 1:
            earlier -= earlier % self.at_once
        due[:] = whole_ns(earlier * self._period_ns)
        self._written += len(due)


class Ramp:
    """A rate that rises, or falls, by the same amount every second, from the first share of it to the last.

    With x = (i - 1) / orders, order i is due at length * (a + b) * x / (a + sqrt(a^2 + (b^2 - a^2) * x)).
    """

    at_once = 1

    def __init__(self, period_ns: float, shares: tuple[float, float], orders: int) -> None:
        self._first, self._last = shares
        self._orders = orders
        self._length_ns = orders * period_ns / (sum(shares) / 2)
        self._written = 0

    def write(self, due: Longs) -> None:
        x = np.arange(self._written, self._written + len(due)) / self._orders
        a, b = self._first, self._last
        under_root = np.maximum(a * a + (b * b - a * a) * x, 0)  # beyond the last order nothing is due
        due[:] = whole_ns(self._length_ns * ((a + b) * x / (a + np.sqrt(under_root))))
        self._written += len(due)


def whole_ns(times_ns: npt.NDArray[np.floating[Any]]) -> Longs:
    return np.minimum(times_ns, float(NEVER_NS)).astype(np.int64)
