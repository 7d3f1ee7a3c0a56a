"""Poisson arrivals: due times whose gaps are random, exponential, and the same on every machine."""

from __future__ import annotations

import math

from numba import float64, int64, njit, uint64

from exchange.compiled import cached_kernel
from gateway import random_bits
from gateway.due_times import NEVER_NS, Longs
from gateway.random_bits import ARRIVALS, STEP, key_beside, mix

FRACTION_BITS = 24
ONE = 1 << FRACTION_BITS


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
