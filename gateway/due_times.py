"""Due times of orders, in ns since the start: a class for each kind of arrivals. docs/workload.md has the formulas.

Only whole numbers and correctly rounded arithmetic are used, so every machine computes the same due times. GENERATORS
names the class of each word of `--arrivals`.
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
from exchange.load_shape import LoadShape
from exchange.settings import RunSettings
from exchange.workload import ARRIVALS, LATEST_NS
from gateway import seeds
from gateway.seeds import STEP, mix, purpose_key
from transports.frames import Longs

NEVER_NS = LATEST_NS
"""The due time of an order that is never due."""
NO_DUE_TIMES: Longs = np.zeros(0, np.int64)
"""Stands for the due times of orders if the run has no schedule."""
FRACTION_BITS = 24
"""Logarithms are whole numbers in units of 2^-FRACTION_BITS."""
ONE = 1 << FRACTION_BITS


class DueTimes(Protocol):
    """Generates due times, block after block."""

    at_once: int
    """The most orders that are due at the same time."""

    def write(self, due: Longs, earlier: int) -> None:
        """Fill `due` with the due times of the orders after the first `earlier` ones. Due times never decrease."""


class Periodic:
    """Bursts of `burst` orders, due at once, every `burst` periods. With 1, order i is due after i - 1 periods."""

    def __init__(self, period_ns: float, burst: int = 1) -> None:
        self._period_ns = period_ns
        self.at_once = burst

    def write(self, due: Longs, earlier: int) -> None:
        periods = np.arange(earlier, earlier + len(due))
        if self.at_once > 1:
            periods -= periods % self.at_once
        due[:] = whole_ns(periods * self._period_ns)


class Ramp:
    """A rate that rises or falls by the same amount every second.

    It begins at a share a of the run's rate, and ends at a share b. With x = (i - 1) / orders, order i is due at
    length * (a + b) * x / (a + sqrt(a^2 + (b^2 - a^2) * x)).
    """

    at_once = 1

    def __init__(self, period_ns: float, shares: tuple[float, float], orders: int) -> None:
        self._first, self._last = shares
        self._orders = orders
        mean_share = sum(shares) / 2
        self._length_ns = orders * period_ns / mean_share

    def write(self, due: Longs, earlier: int) -> None:
        x = np.arange(earlier, earlier + len(due)) / self._orders
        a = self._first
        b = self._last
        under_root = np.maximum(a * a + (b * b - a * a) * x, 0)  # only beyond the run's last order it would be below 0
        share_of_length = (a + b) * x / (a + np.sqrt(under_root))
        due[:] = whole_ns(self._length_ns * share_of_length)


class Shaped:
    """A rate that changes from segment to segment, and within a ramp by the same amount every second.

    Order i is due when the integral of the rate is i - 1. In a segment with the rates a at its start and b after its
    length T, x orders after its start take 2 * x / (a + sqrt(a^2 + 2 * x * (b - a) / T)). After the last segment its
    last rate goes on.
    """

    at_once = 1

    def __init__(self, period_ns: float, shape: LoadShape) -> None:
        segments = [segment for segment in shape.segments if segment.seconds is not None]
        first_per_ns = np.array([segment.first / period_ns for segment in segments])
        last_per_ns = np.array([segment.last / period_ns for segment in segments])
        lengths_ns = np.array([(segment.seconds or 0.0) * 1e9 for segment in segments])
        orders = (first_per_ns + last_per_ns) / 2 * lengths_ns
        # The last entry of each array is the time after all segments, in which the rate is constant.
        self._first_per_ns = np.append(first_per_ns, shape.segments[-1].last / period_ns)
        self._slope = np.append((last_per_ns - first_per_ns) / lengths_ns, 0.0)
        self._orders_before = np.concatenate(([0.0], np.cumsum(orders)))
        self._start_ns = np.concatenate(([0.0], np.cumsum(lengths_ns)))

    def write(self, due: Longs, earlier: int) -> None:
        numbers = np.arange(earlier, earlier + len(due))
        segments = np.searchsorted(self._orders_before, numbers, side="right") - 1
        x = numbers - self._orders_before[segments]
        a = self._first_per_ns[segments]
        under_root = np.maximum(a * a + 2 * x * self._slope[segments], 0)  # only rounding could bring it below 0
        due[:] = whole_ns(self._start_ns[segments] + 2 * x / (a + np.sqrt(under_root)))


class Poisson:
    """Independent exponential gaps with a mean of one period. At another rate, the gaps of a seed are only scaled."""

    at_once = 1

    def __init__(self, period_ns: float, seed: int) -> None:
        self._key = uint64(purpose_key(uint64(seed), uint64(seeds.ARRIVALS)))
        self._scale_ns = period_ns * math.log(2) / ONE
        self._sum = 0
        """The sum of all gaps so far, as a logarithm."""

    def write(self, due: Longs, earlier: int) -> None:
        self._sum = int(write_poisson(self._key, earlier, self._sum, self._scale_ns, due))


@njit(inline="always")
def minus_log2(z: int) -> int:
    """Return -log2(z / 2^64) in units of 2^-24, at least 1. After z is normalized, each squaring gives one bit."""
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
        self.at_once = most_at_once(due_ns, speed)

    @classmethod
    def of(cls, tape: Path, orders: int, speed: float) -> Recorded:
        from gateway.tape import due_path, map_file

        times_of_tape = map_file(due_path(tape)).view("<i8")
        return cls(times_of_tape[:orders], speed)

    def write(self, due: Longs, earlier: int) -> None:
        part = self._due_ns[earlier : earlier + len(due)]
        due[: len(part)] = at_speed(part - self._due_ns[0], self._speed)
        due[len(part) :] = NEVER_NS


def at_speed(recorded_ns: Longs, speed: float) -> Longs:
    """Return when orders are due that were recorded so long after the first one."""
    return whole_ns(recorded_ns / speed)


def most_at_once(due: Longs, speed: float = 1.0) -> int:
    """Return the length of the longest run of equal due times at that speed, at which different times may become equal.

    It reads the array in parts, since it may be a file.
    """
    from gateway.tape import CHUNK_ORDERS

    longest = 0
    start = 0  # the begin of the run of equal times with which the parts so far end
    for first in range(0, len(due), CHUNK_ORDERS):
        part = at_speed(due[first : first + CHUNK_ORDERS + 1] - due[0], speed)
        new_starts = first + 1 + np.flatnonzero(part[1:] != part[:-1])
        starts = np.concatenate(([start], new_starts))
        longest = max(longest, int(np.diff(starts).max(initial=0)))
        start = int(starts[-1])
    return max(longest, len(due) - start)


def whole_ns(times_ns: npt.NDArray[np.floating[Any]]) -> Longs:
    """Round the times down. Times beyond NEVER_NS become NEVER_NS."""
    return np.minimum(times_ns, float(NEVER_NS)).astype(np.int64)


def _shape_of(settings: RunSettings) -> LoadShape:
    shape = settings.arriving.shape
    assert shape is not None
    return shape


GENERATORS: dict[str, Callable[[RunSettings, float], DueTimes]] = {
    "fixed": lambda _, period_ns: Periodic(period_ns),
    "poisson": lambda settings, period_ns: Poisson(period_ns, settings.seed),
    "bursts": lambda settings, period_ns: Periodic(period_ns, settings.arriving.burst),
    "ramp": lambda settings, period_ns: Ramp(period_ns, settings.arriving.shares, settings.order_limit),
    "steps": lambda settings, period_ns: Shaped(period_ns, _shape_of(settings)),
    "recorded": lambda settings, _: Recorded.of(Path(str(settings.tape)), settings.order_limit, settings.speed or 1.0),
}
"""Makes the due times of each kind of arrivals from a run's settings and its mean period in ns."""
check_registry("GENERATORS of gateway/due_times.py", GENERATORS, ARRIVALS)


def due_times_of(settings: RunSettings) -> DueTimes | None:
    """Return a run's due times; None if the run has no rate, so that no order has a due time."""
    if settings.orders_per_s is None:
        return None
    generator = GENERATORS[settings.arriving.kind]
    period_ns = 1e9 / settings.orders_per_s
    return generator(settings, period_ns)
