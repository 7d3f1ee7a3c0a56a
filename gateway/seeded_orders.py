"""The seeded order stream: an order is a function of seed and id alone, so it is the same everywhere.

    bits   = mix(mix(seed + STEP) + id * STEP)           all modulo 2^64
    side   = 1 + bit 63                                   (ask = 1, bid = 2)
    volume = 1   + (bits 32..62 * 100) >> 31              (lots)
    price  = low + (bits 0..31 * (high - low + 1)) >> 32  (ticks)

`random_bits.py` has `mix` and STEP, `moving_mid.py` the other prices; test vectors stand in docs/method.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from exchange import messages
from exchange.compiled import cached_kernel
from exchange.messages import LAYOUTS, Order
from exchange.settings import RunSettings
from gateway import moving_mid, random_bits
from gateway.moving_mid import price_share
from gateway.random_bits import MID, NOISE, STEP, key_beside, mix, stream_key

Bytes = npt.NDArray[np.uint8]

ORDER_TYPE, ORDER_BYTES = LAYOUTS[Order].code, LAYOUTS[Order].size
VOLUMES = uint64(100)


@njit(inline="always")
def _put(buffer: Bytes, at: int, value: int, width: int) -> None:
    for k in range(width):
        buffer[at + k] = (value >> uint64(8 * k)) & uint64(0xFF)


@njit(inline="always")
def _put_order(buffer: Bytes, at: int, order_id: int, bits: int, price: int) -> None:
    volume = uint64(1) + ((((bits >> uint64(32)) & uint64(0x7FFFFFFF)) * VOLUMES) >> uint64(31))
    buffer[at] = ORDER_TYPE
    _put(buffer, at + 1, order_id, 4)
    buffer[at + 5] = uint64(1) + (bits >> uint64(63))
    _put(buffer, at + 6, price, 2)
    _put(buffer, at + 8, volume, 2)


@cached_kernel(messages, random_bits)
def write_uniform(key: int, first_id: int, count: int, low: int, prices: int, buffer: Bytes) -> None:
    """Write the records of orders first_id.. from the buffer's start, prices uniform."""
    at = 0
    for i in range(count):
        order_id = uint64(first_id + i)
        bits = mix(key + order_id * STEP)
        _put_order(buffer, at, order_id, bits, low + (((bits & uint64(0xFFFFFFFF)) * prices) >> uint64(32)))
        at += ORDER_BYTES


@cached_kernel(messages, random_bits, moving_mid)
def write_around_mid(
    key: int, mid_key: int, noise_key: int, first_id: int, count: int, low: int, prices: int, buffer: Bytes
) -> None:
    """The same orders but for their prices, which lie around a mid that moves."""
    at = 0
    for i in range(count):
        order_id = uint64(first_id + i)
        price = low + ((price_share(mid_key, noise_key, order_id) * prices) >> uint64(33))
        _put_order(buffer, at, order_id, mix(key + order_id * STEP), price)
        at += ORDER_BYTES


class SeededOrders:
    """Any order, without those before it."""

    def __init__(self, seed: int, prices: tuple[int, int], around_mid: bool = False) -> None:
        self._key = uint64(stream_key(uint64(seed)))
        self._low, self._prices = uint64(prices[0]), uint64(prices[1] - prices[0] + 1)
        self._mid_key, self._noise_key = (uint64(key_beside(uint64(seed), uint64(of))) for of in (MID, NOISE))
        self._around_mid = around_mid

    @classmethod
    def of(cls, settings: RunSettings) -> SeededOrders:
        return cls(settings.seed, settings.prices, settings.price_model == "normal")

    def write(self, buffer: Bytes, first_id: int, count: int) -> None:
        """The records of `count` orders from `first_id` on, from the buffer's start."""
        if self._around_mid:
            mid_key, noise_key = self._mid_key, self._noise_key
            write_around_mid(self._key, mid_key, noise_key, first_id, count, self._low, self._prices, buffer)
        else:
            write_uniform(self._key, first_id, count, self._low, self._prices, buffer)

    def records(self, first_id: int, count: int) -> bytes:
        """The same as bytes, for a tape."""
        buffer = np.empty(count * ORDER_BYTES, np.uint8)
        self.write(buffer, first_id, count)
        return buffer.tobytes()
