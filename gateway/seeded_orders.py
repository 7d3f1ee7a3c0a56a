"""The seeded order stream: an order is a function of seed and id alone, so it is the same everywhere.

    bits   = mix(mix(seed + STEP) + id * STEP)           all modulo 2^64
    side   = 1 + bit 63                                   (ask = 1, bid = 2)
    volume = 1   + (bits 32..62 * 100) >> 31              (lots)
    price  = low + (bits 0..31 * (high - low + 1)) >> 32  (ticks), uniform

Two-sided prices are uniform in the lower 55 % of the prices for bids, in the upper 55 % for asks (rounded up).

Normal prices lie around a mid that moves. Prices are whole numbers within low..high:

    price  = low + (high - low + 1) * (mid + noise) / 2   rounded down

Mid and noise lie within 0..1, and are counted in units of 2^-32:

    noise  four uniform numbers, summed (Irwin and Hall's distribution, close to a normal one): a standard deviation
           of 0.072 of the range of prices
    mid    straight lines between random heights every 65,536, 4,096 and 256 orders, added up with weights of 16, 4
           and 1: like a random walk, it goes a quarter of the way in a sixteenth of the time

`seeds.py` has `mix` and STEP; test vectors stand in docs/order-stream.md. WRITERS has the kernel of each price model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit, uint64

from exchange import messages
from exchange.allowed import check_registry
from exchange.compiled import cached_kernel, record_writer
from exchange.messages import LAYOUTS, Order
from exchange.settings import RunSettings
from exchange.workload import PRICE_MODELS
from gateway import seeds
from gateway.seeds import MID, NOISE, STEP, mix, purpose_key, stream_key
from transports.frames import Bytes

ORDER_BYTES = LAYOUTS[Order].size
VOLUMES = uint64(100)
PART_PERCENT = uint64(55)
"""The percentage of all prices from which two-sided bids, and asks, are drawn."""
_put_order = record_writer(Order, "id", "side", "price", "volume")


@njit(inline="always")
def _put(buffer: Bytes, at: int, order_id: int, bits: int, price: int) -> int:
    """Write the order from byte `at` on. Returns its end."""
    side = uint64(1) + (bits >> uint64(63))
    volume = uint64(1) + ((((bits >> uint64(32)) & uint64(0x7FFFFFFF)) * VOLUMES) >> uint64(31))
    return _put_order(buffer, at, (order_id, side, price, volume))


@cached_kernel(messages, seeds)
def write_uniform(key: int, first_id: int, count: int, low: int, prices: int, buffer: Bytes) -> None:
    """Write the records of orders first_id.. from the buffer's start on, with uniform prices."""
    at = 0
    for i in range(count):
        order_id = uint64(first_id + i)
        bits = mix(key + order_id * STEP)
        at = _put(buffer, at, order_id, bits, low + (((bits & uint64(0xFFFFFFFF)) * prices) >> uint64(32)))


@cached_kernel(messages, seeds)
def write_two_sided(key: int, first_id: int, count: int, low: int, prices: int, buffer: Bytes) -> None:
    """Write the same records as `write_uniform` but for the prices: bids lie in the lower part, asks in the upper."""
    part = (prices * PART_PERCENT + uint64(99)) // uint64(100)
    at = 0
    for i in range(count):
        order_id = uint64(first_id + i)
        bits = mix(key + order_id * STEP)
        is_bid = bits >> uint64(63)
        lowest = low if is_bid else low + prices - part
        at = _put(buffer, at, order_id, bits, lowest + (((bits & uint64(0xFFFFFFFF)) * part) >> uint64(32)))


@njit(inline="always")
def _height(key: int, shift: int, corner: int) -> int:
    """The random height, below 2^32, at a corner of the lines whose corners are 2^shift orders apart."""
    return mix(key + ((shift << uint64(32)) + corner) * STEP) >> uint64(32)


@njit(inline="always")
def _on_line(key: int, shift: int, order_id: int) -> int:
    """The height at this order, on the line between the two corners beside it; corners are 2^shift orders apart."""
    corner = order_id >> shift
    offset = order_id & ((uint64(1) << shift) - uint64(1))
    left = _height(key, shift, corner)
    right = _height(key, shift, corner + uint64(1))
    return (left * ((uint64(1) << shift) - offset) + right * offset) >> shift


@njit(inline="always")
def _mid(key: int, order_id: int) -> int:
    """The mid at this order, in units of 2^-32: the weighted mean of three lines."""
    slow = _on_line(key, uint64(16), order_id)
    medium = _on_line(key, uint64(12), order_id)
    fast = _on_line(key, uint64(8), order_id)
    return (uint64(16) * slow + uint64(4) * medium + fast) // uint64(21)


@njit(inline="always")
def _noise(key: int, order_id: int) -> int:
    """The noise of this order, in units of 2^-32: the sum of four uniform numbers of 16 bits each."""
    bits = mix(key + order_id * STEP)
    mask = uint64(0xFFFF)
    total = (bits & mask) + ((bits >> uint64(16)) & mask) + ((bits >> uint64(32)) & mask) + (bits >> uint64(48))
    return total << uint64(14)  # the sum is below 2^18, so the noise is below 2^32


@cached_kernel(messages, seeds)
def write_around_mid(
    key: int, mid_key: int, noise_key: int, first_id: int, count: int, low: int, prices: int, buffer: Bytes
) -> None:
    """Write the same records as `write_uniform` but for the prices, which lie around a mid that moves."""
    at = 0
    for i in range(count):
        order_id = uint64(first_id + i)
        share = _mid(mid_key, order_id) + _noise(noise_key, order_id)  # of the range of prices, in units of 2^-33
        at = _put(buffer, at, order_id, mix(key + order_id * STEP), low + ((share * prices) >> uint64(33)))


Write = Callable[[int, int, int, int, Bytes], None]
"""Takes the first id, a count, the lowest price, the number of prices, and the buffer."""


def uniform(seed: int) -> Write:
    """Return `write_uniform` with the key of this seed."""
    return partial(write_uniform, uint64(stream_key(uint64(seed))))


def two_sided(seed: int) -> Write:
    """Return `write_two_sided` with the key of this seed."""
    return partial(write_two_sided, uint64(stream_key(uint64(seed))))


def around_mid(seed: int) -> Write:
    """Return `write_around_mid` with the keys of this seed."""
    key = uint64(stream_key(uint64(seed)))
    mid_key = uint64(purpose_key(uint64(seed), uint64(MID)))
    noise_key = uint64(purpose_key(uint64(seed), uint64(NOISE)))
    return partial(write_around_mid, key, mid_key, noise_key)


WRITERS: dict[str, Callable[[int], Write]] = {
    "uniform": uniform,
    "normal": around_mid,
    "wide": uniform,
    "two-sided": two_sided,
}
"""The writer of each price model, of a seed. The range of prices comes from the settings."""
check_registry("WRITERS of gateway/seeded_orders.py", WRITERS, PRICE_MODELS)


class SeededOrders:
    """Random access to the order stream of a seed."""

    def __init__(self, seed: int, prices: tuple[int, int], price_model: str = "uniform") -> None:
        self._low = uint64(prices[0])
        self._prices = uint64(prices[1] - prices[0] + 1)
        self._write = WRITERS[price_model](seed)

    @classmethod
    def of(cls, settings: RunSettings) -> SeededOrders:
        return cls(settings.seed, settings.prices, settings.price_model)

    def write(self, buffer: Bytes, first_id: int, count: int) -> None:
        """Write the records of `count` orders from `first_id` on, from the buffer's start on."""
        self._write(first_id, count, self._low, self._prices, buffer)

    def records(self, first_id: int, count: int) -> bytes:
        """The same records as bytes, for a tape."""
        buffer = np.empty(count * ORDER_BYTES, np.uint8)
        self.write(buffer, first_id, count)
        return buffer.tobytes()
