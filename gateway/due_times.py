"""Due times of orders, in ns since the start: a class for each kind of arrivals. docs/workload.md has the formulas.

Only whole numbers and correctly rounded arithmetic are used, so every machine has the same due times. GENERATORS has
the class of each word of `--arrivals`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numba import float64, int64, njit, uint64

from exchange.allowed import check_registry
from exchange.compiled import cached_kernel
from exchange.settings import RunSettings
from exchange.workload import ARRIVALS, LATEST_NS
from gateway import seeds
from gateway.seeds import STEP, key_beside, mix
from transports.frames import Longs

NEVER_NS = LATEST_NS
NO_DUE_TIMES: Longs = np.zeros(0, np.int64)
"""The due times of any orders without a schedule."""
FRACTION_BITS = 24
ONE = 1 << FRACTION_BITS


class DueTimes(Protocol):
    """Due times, asked for in order."""

    at_once: int
    """The most orders that are due at the same time."""

    def write(self, due: Longs, earlier: int) -> None:
        """Write the due times behind the `earlier` ones; they never decrease."""


class Periodic:
    """Bursts of `burst` orders, `burst` periods apart: in bursts of 1, order i is due after i - 1 periods."""

    def __init__(self, period_ns: float, burst: int = 1) -> None:
        self._period_ns = period_ns
        self.at_once = burst

    def write(self, due: Longs, earlier: int) -> None:
        periods = np.arange(earlier, earlier + len(due))
        if self.at_once > 1:
            periods -= periods % self.at_once
        due[:] = whole_ns(periods * self._period_ns)


class Ramp:
    """A rate that rises, or falls, by the same amount every second, from the first share of it to the last.

    With x = (i - 1) / orders, order i is due at length * (a + b) * x / (a + sqrt(a^2 + (b^2 - a^2) * x)).
    """

    at_once = 1

    def __init__(self, period_ns: float, shares: tuple[float, float], orders: int) -> None:
        self._first, self._last = shares
        self._orders = orders
        self._length_ns = orders * period_ns / (sum(shares) / 2)

    def write(self, due: Longs, earlier: int) -> None:
        x = np.arange(earlier, earlier + len(due)) / self._orders
        a, b = self._first, self._last
        under_root = np.maximum(a * a + (b * b - a * a) * x, 0)  # below 0 behind the last order only
        due[:] = whole_ns(self._length_ns * ((a + b) * x / (a + np.sqrt(under_root))))


class Poisson:
    """Independent exponential gaps with a mean of one period; another rate only scales the gaps of a seed."""

    at_once = 1

    def __init__(self, period_ns: float, seed: int) -> None:
        self._key = uint64(key_beside(uint64(seed), uint64(seeds.ARRIVALS)))
        self._scale_ns = period_ns * math.log(2) / ONE
        self._sum = 0

    def write(self, due: Longs, earlier: int) -> None:
        self._sum = int(write_poisson(self._key, earlier, self._sum, self._scale_ns, due))


@njit(inline="always")
def minus_log2(z: int) -> int:
    """-log2(z / 2^64) in units of 2^-24, at least 1. With z normalized, each squaring gives a bit of the fraction."""
    z = z | uint64(1)
    zeros = uint64(0)
    while z >> uint64(63) == 0:
        z <<= uint64(1)
        zeros += uint64(1)
    m = z >> uint64(32)
    fraction = uint64(0)
    for _ in range(FRACTION_BITS):
        m = (m * m) >> uint64(31)
        carry = m >> uint64(32)
        m >>= carry
        fraction = fraction << uint64(1) | carry
    return int64(((zeros + uint64(1)) << uint64(FRACTION_BITS)) - fraction)


@cached_kernel(seeds)
def write_poisson(key: int, written: int, total: int, scale_ns: float, due: Longs) -> int:
    """Write due times: each order is due after the gaps of the orders before it. Returns the sum of all gaps so far."""
    for i in range(len(due)):
        due[i] = int64(min(float64(total) * scale_ns, float64(NEVER_NS)))
        total += minus_log2(mix(key + uint64(written + i + 1) * STEP))
    return total


class Recorded:
    """A tape's due times, counted from the first one, at `speed` times their speed."""

    def __init__(self, due_ns: Longs, speed: float) -> None:
        self._due_ns = due_ns
        self._speed = speed
        self.at_once = most_at_once(due_ns)

    @classmethod
    def of(cls, tape: Path, orders: int, speed: float) -> Recorded:
        from gateway.tape import due_path, mapped

        return cls(mapped(due_path(tape)).view("<i8")[:orders], speed)

    def write(self, due: Longs, earlier: int) -> None:
        part = self._due_ns[earlier : earlier + len(due)]
        due[: len(part)] = whole_ns((part - self._due_ns[0]) / self._speed)
        due[len(part) :] = NEVER_NS


def most_at_once(due: Longs) -> int:
    """The most orders with the same due time."""
    from gateway.tape import CHUNK_ORDERS

    longest = start = 0
    for first in range(0, len(due), CHUNK_ORDERS):
        part = due[first : first + CHUNK_ORDERS + 1]
        starts = np.concatenate(([start], first + 1 + np.flatnonzero(part[1:] != part[:-1])))
        longest = max(longest, int(np.diff(starts).max(initial=0)))
        start = int(starts[-1])
    return max(longest, len(due) - start)


def whole_ns(times_ns: npt.NDArray[np.floating[Any]]) -> Longs:
    """The times rounded down, NEVER_NS at most."""
    return np.minimum(times_ns, float(NEVER_NS)).astype(np.int64)


GENERATORS: dict[str, Callable[[RunSettings, float], DueTimes]] = {
    "fixed": lambda _, period_ns: Periodic(period_ns),
    "poisson": lambda settings, period_ns: Poisson(period_ns, settings.seed),
    "bursts": lambda settings, period_ns: Periodic(period_ns, settings.arriving.burst),
    "ramp": lambda settings, period_ns: Ramp(period_ns, settings.arriving.shares, settings.order_limit),
    "recorded": lambda settings, _: Recorded.of(Path(str(settings.tape)), settings.order_limit, settings.speed or 1.0),
}
"""The due times of each kind of arrivals, of a run's settings and its mean period in ns."""
check_registry("GENERATORS of gateway/due_times.py", GENERATORS, ARRIVALS)


def due_times_of(settings: RunSettings) -> DueTimes | None:
    """A run's due times; None where there is no rate, so that nothing is due."""
    if settings.orders_per_s is None:
        return None
    return GENERATORS[settings.arriving.kind](settings, 1e9 / settings.orders_per_s)
