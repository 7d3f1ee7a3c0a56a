"""When orders are due, in ns since the start: one class a kind of arrival. docs/method.md has the formulas.

Whole numbers and correctly rounded arithmetic alone, so that every machine has the same due times.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import numpy.typing as npt
from numba import float64, int64, njit, uint64

from exchange.kernel_cache import cached_kernel
from exchange.settings import RunSettings
from gateway import random_bits
from gateway.random_bits import ARRIVALS, STEP, key_beside, mix

Longs = npt.NDArray[np.int64]

NEVER_NS = 2**62
FRACTION_BITS = 24
ONE = 1 << FRACTION_BITS


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
        due[:] = _whole_ns(earlier * self._period_ns)
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
        due[:] = _whole_ns(self._length_ns * ((a + b) * x / (a + np.sqrt(under_root))))
        self._written += len(due)


class Poisson:
    """Independent gaps, exponential, a period on average; of a seed the same at every rate, but for the period."""

    at_once = 1

    def __init__(self, period_ns: float, seed: int) -> None:
        self._key = uint64(key_beside(uint64(seed), uint64(ARRIVALS)))
        self._scale_ns = period_ns * math.log(2) / ONE
        self._written = self._sum = 0

    def write(self, due: Longs) -> None:
        self._sum = int(write_poisson(self._key, self._written, self._sum, self._scale_ns, due))
        self._written += len(due)


@njit(inline="always")
def minus_log2(z: int) -> int:
    """-log2(z / 2^64), in units of 2^-24, from 1 on: by normalizing, then a bit of the fraction with each squaring."""
    z, zeros = z | uint64(1), uint64(0)
    while z >> uint64(63) == 0:
        z <<= uint64(1)
        zeros += uint64(1)
    m, fraction = z >> uint64(32), uint64(0)
    for _ in range(FRACTION_BITS):
        m = (m * m) >> uint64(31)
        carry = m >> uint64(32)
        m >>= carry
        fraction = fraction << uint64(1) | carry
    return int64(((zeros + uint64(1)) << uint64(FRACTION_BITS)) - fraction)


@cached_kernel(random_bits)
def write_poisson(key: int, written: int, total: int, scale_ns: float, due: Longs) -> int:
    """Order i is due after the gaps of the orders before it; all gaps up to the last one written, its own in."""
    for i in range(len(due)):
        due[i] = int64(min(float64(total) * scale_ns, float64(NEVER_NS)))
        total += minus_log2(mix(key + uint64(written + i + 1) * STEP))
    return total


def _whole_ns(times_ns: npt.NDArray[np.float64]) -> Longs:
    return np.minimum(times_ns, float(NEVER_NS)).astype(np.int64)


def due_times_of(settings: RunSettings) -> DueTimes | None:
    """None where there is no rate, and so nothing is due."""
    if settings.orders_per_s is None:
        return None
    period_ns, arrivals = 1e9 / settings.orders_per_s, settings.arriving
    if arrivals.kind == "poisson":
        return Poisson(period_ns, settings.seed)
    if arrivals.kind == "ramp":
        return Ramp(period_ns, arrivals.shares, settings.order_limit)
    return Periodic(period_ns, arrivals.burst)
