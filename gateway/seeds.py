"""Random bits by counting, and the seeds of instruments: functions of a seed and a number alone.

So they are the same on every machine, in any order; all is modulo 2^64.

    key         = mix(seed + STEP)                  of the orders themselves
    bits        = mix(key + number * STEP)
    key_beside  = the bits of number 2^32 + purpose, which no order has: for what is drawn beside the orders

`mix` is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014), STEP
its golden gamma. Many instruments of one seed each have the order stream of a seed of their own:

    seed of instrument k     bits(INSTRUMENTS, k) >> 1, which fits a signed 64-bit column (docs/order-stream.md)
    orders of instrument k   orders // instruments, and one more of the first orders % instruments

Instruments count from 1, as orders do.
"""

from __future__ import annotations

from dataclasses import replace

from numba import njit, uint64

from exchange.settings import RunSettings

STEP = uint64(0x9E3779B97F4A7C15)
# The purposes of the bits that are drawn beside the orders.
ARRIVALS = 1
"""Gaps between arrivals."""
MID = 2
"""The mid around which prices lie."""
NOISE = 3
"""The distances of prices from the mid."""
INSTRUMENTS = 4
"""Seeds of instruments."""


@njit(inline="always")
def mix(z: int) -> int:
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@njit(cache=True)
def stream_key(seed: int) -> int:
    return mix(uint64(seed) + STEP)


@njit(cache=True)
def key_beside(seed: int, purpose: int) -> int:
    return mix(stream_key(seed) + (uint64(1 << 32) + uint64(purpose)) * STEP)


@njit(cache=True)
def bits_beside(seed: int, purpose: int, number: int) -> int:
    return mix(key_beside(seed, purpose) + uint64(number) * STEP)


def instrument_seed(seed: int, instrument: int) -> int:
    return int(bits_beside(uint64(seed), uint64(INSTRUMENTS), uint64(instrument))) >> 1


def settings_of_pair(settings: RunSettings, pair: int) -> RunSettings:
    """A run's settings with the seed of this pair: pair 1 has the run's seed, pair k that of instrument k."""
    return settings if pair == 1 else replace(settings, seed=instrument_seed(settings.seed, pair))


def instrument_orders(orders: int, instruments: int, instrument: int) -> int:
    """The instrument's share of all orders; the shares of all instruments add up to `orders`."""
    share = orders // instruments
    if instrument <= orders % instruments:
        share += 1
    return share
