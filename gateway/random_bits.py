"""Random bits by counting: a function of seed and number alone, so the same on every machine, in any order.

    key         = mix(seed + STEP)                  of the orders themselves; all modulo 2^64
    bits        = mix(key + number * STEP)
    key_beside  = the bits of number 2^32 + purpose, which no order has: for what is drawn beside the orders

`mix` is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014),
STEP its golden gamma.
"""

from __future__ import annotations

from numba import njit, uint64

STEP = uint64(0x9E3779B97F4A7C15)
ARRIVALS, MID, NOISE, INSTRUMENTS = 1, 2, 3, 4
"""What is drawn beside the orders, each with a key of its own: gaps between arrivals, the mid, prices around it, and
seeds of instruments."""


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
