"""The gateway's random bits in Python's own integers."""

from __future__ import annotations

U64 = 2**64
STEP = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    """SplitMix64's finalizer."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % U64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % U64
    return z ^ (z >> 31)


def orders_key(seed: int) -> int:
    return mix((seed + STEP) % U64)


def purpose_key(seed: int, purpose: int) -> int:
    return bits(orders_key(seed), 2**32 + purpose)


def bits(key: int, number: int) -> int:
    return mix((key + number * STEP) % U64)
