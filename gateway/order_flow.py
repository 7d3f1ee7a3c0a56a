"""The seeded order stream: an order is a function of seed and id alone, so it is the same everywhere.

    bits   = mix(mix(seed + STEP) + id * STEP)           all modulo 2^64
    side   = 1 + bit 63                                   (ask = 1, bid = 2)
    volume = 1   + (bits 32..62 * 100) >> 31              (lots)
    price  = low + (bits 0..31 * (high - low + 1)) >> 32  (ticks)

`random_bits.py` has `mix` and STEP; test vectors stand in docs/method.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from exchange import messages
from exchange.kernel_cache import cached_kernel
from exchange.messages import LAYOUTS, Order
from exchange.settings import RunSettings
from gateway import random_bits
from gateway.random_bits import STEP, mix, stream_key
from transports.frames import FrameBatch

ORDER_TYPE, ORDER_BYTES = LAYOUTS[Order].code, LAYOUTS[Order].size
VOLUMES = uint64(100)
LONGEST_BATCH = 1 << 16  # frames


@njit(inline="always")
def _put(buffer: npt.NDArray[np.uint8], at: int, value: int, width: int) -> None:
    for k in range(width):
        buffer[at + k] = (value >> uint64(8 * k)) & uint64(0xFF)


@cached_kernel(messages, random_bits)
def write_orders(
    key: int, first_id: int, count: int, low: int, prices: int, buffer: npt.NDArray[np.uint8], at: int
) -> None:
    """Write the records of orders first_id.. at `buffer[at:]`."""
    for i in range(count):
        order_id = uint64(first_id + i)
        bits = mix(key + order_id * STEP)
        price = low + (((bits & uint64(0xFFFFFFFF)) * prices) >> uint64(32))
        volume = uint64(1) + ((((bits >> uint64(32)) & uint64(0x7FFFFFFF)) * VOLUMES) >> uint64(31))
        buffer[at] = ORDER_TYPE
        _put(buffer, at + 1, order_id, 4)
        buffer[at + 5] = uint64(1) + (bits >> uint64(63))
        _put(buffer, at + 6, price, 2)
        _put(buffer, at + 8, volume, 2)
        at += ORDER_BYTES


class OrderFlow:
    """Writes orders into batches, `packing` of them to a frame."""

    def __init__(self, seed: int, prices: tuple[int, int], packing: int = 1) -> None:
        self._key = uint64(stream_key(uint64(seed)))
        self._low, self._prices = uint64(prices[0]), uint64(prices[1] - prices[0] + 1)
        self._packing = packing
        self._ends = np.arange(1, LONGEST_BATCH + 1) * (packing * ORDER_BYTES)

    @classmethod
    def of(cls, settings: RunSettings) -> OrderFlow:
        return cls(settings.seed, settings.prices, settings.packing)

    def fill(self, batch: FrameBatch, first_id: int, count: int) -> None:
        """Make the batch hold orders first_id .. first_id + count - 1; the last frame may be shorter."""
        write_orders(self._key, first_id, count, self._low, self._prices, batch.buffer, 0)
        frames = -(-count // self._packing)
        batch.offsets[1 : frames + 1] = self._ends[:frames]
        batch.offsets[frames] = count * ORDER_BYTES
        batch.count = frames

    def records(self, first_id: int, count: int) -> bytes:
        """The same orders as bytes, for a tape."""
        buffer = np.empty(count * ORDER_BYTES, np.uint8)
        write_orders(self._key, first_id, count, self._low, self._prices, buffer, 0)
        return buffer.tobytes()
