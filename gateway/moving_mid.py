"""Prices around a mid that moves: both functions of seed and id alone, in whole numbers, and never out of range.

A price is low + (high - low + 1) * (mid + noise) / 2, rounded down, both within 0..1, here in units of 2^-32.

    noise  four uniform numbers, summed (Irwin and Hall's distribution, close to a normal one): a standard deviation
           of 0.072 of the range of prices
    mid    straight lines between random heights, every 65,536, 4,096 and 256 orders, added up with weights of 16, 4
           and 1: a quarter of the way in a sixteenth of the time, as a random walk goes
"""

from __future__ import annotations

from numba import njit, uint64

from gateway.random_bits import STEP, mix


@njit(inline="always")
def _height(key: int, shift: int, corner: int) -> int:
    return mix(key + ((shift << uint64(32)) + corner) * STEP) >> uint64(32)


@njit(inline="always")
def _on_line(key: int, shift: int, order_id: int) -> int:
    """Between the random heights of the corners, 2^shift orders apart, before and behind this order."""
    corner, way = order_id >> shift, order_id & ((uint64(1) << shift) - uint64(1))
    left, right = _height(key, shift, corner), _height(key, shift, corner + uint64(1))
    return (left * ((uint64(1) << shift) - way) + right * way) >> shift


@njit(inline="always")
def _mid(key: int, order_id: int) -> int:
    slow, medium, fast = (
        _on_line(key, uint64(16), order_id),
        _on_line(key, uint64(12), order_id),
        _on_line(key, uint64(8), order_id),
    )
    return (uint64(16) * slow + uint64(4) * medium + fast) // uint64(21)


@njit(inline="always")
def _noise(key: int, order_id: int) -> int:
    bits, low = mix(key + order_id * STEP), uint64(0xFFFF)
    quarters = (bits & low) + ((bits >> uint64(16)) & low) + ((bits >> uint64(32)) & low) + (bits >> uint64(48))
    return quarters << uint64(14)


@njit(inline="always")
def price_share(mid_key: int, noise_key: int, order_id: int) -> int:
    """Of the range of prices, below 2^33."""
    return _mid(mid_key, order_id) + _noise(noise_key, order_id)
