"""The instruments of orders: a function of seed, number of instruments and order number alone.

Instruments follow Zipf's law with exponent 1: instrument k, from 0 on, has a share of 1 / (k + 1) of the share of
instrument 0. With `bits` of purpose INSTRUMENT_CHOICE and number n (seeds.py), the instrument of order n is the first
whose limit is above bits 32..63:

    weight of k   2^40 // (k + 1)
    limit of k    (weights of 0..k, summed) * 2^32 // (all weights, summed)

So the limit of the last instrument is 2^32, and every step is in whole numbers, the same on every machine.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from exchange import messages
from exchange.compiled import cached_kernel, signed
from gateway import seeds
from gateway.seeds import INSTRUMENT_CHOICE, STEP, mix, purpose_key
from transports.frames import Longs

ONLY_ONE = np.zeros(0, np.int64)
"""The limits of a stream whose orders have no instrument."""
_WEIGHT_OF_FIRST = 1 << 40


def limits_of(instruments: int) -> Longs:
    """Return the limit of each instrument, as a part of 2^32."""
    weights = [_WEIGHT_OF_FIRST // (instrument + 1) for instrument in range(instruments)]
    total = sum(weights)
    limits: list[int] = []
    summed = 0
    for weight in weights:
        summed += weight
        limits.append((summed << 32) // total)
    return np.array(limits, np.int64)


def choice_key(seed: int) -> int:
    """Return the key of the instruments of a seed's orders."""
    return int(purpose_key(uint64(seed), uint64(INSTRUMENT_CHOICE)))


@njit(inline="always")
def chosen(key: int, limits: Longs, number: int) -> int:
    """Return the instrument of order `number`: the first whose limit is above the order's share of 2^32."""
    share = signed(mix(key + uint64(number) * STEP) >> uint64(32))
    low = 0
    high = len(limits) - 1
    while low < high:
        middle = (low + high) >> 1
        if limits[middle] > share:
            high = middle
        else:
            low = middle + 1
    return low


@cached_kernel(messages, seeds)
def _write_instruments(key: int, limits: Longs, numbers: Longs, instruments: Longs) -> None:
    for i in range(len(numbers)):
        instruments[i] = chosen(key, limits, numbers[i])


def instruments_of(seed: int, instruments: int, numbers: Longs) -> Longs:
    """Return the instruments of the orders with these numbers, shape (len(numbers),)."""
    result = np.zeros(len(numbers), np.int64)
    _write_instruments(uint64(choice_key(seed)), limits_of(instruments), numbers, result)
    return result
