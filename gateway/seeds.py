"""Random bits by counting, and the seeds of instruments: functions of a seed and a number alone.

The bits are the same on every machine, in whatever order they are computed. All arithmetic is modulo 2^64.

    key          = mix(seed + STEP)                  the key of the orders themselves
    bits         = mix(key + number * STEP)          the bits of an order, by its id
    purpose_key  = the bits of number 2^32 + purpose, which is no order's id: the key of other random numbers

`mix` is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014), and
STEP is its golden gamma. If a seed has several instruments, each has a seed of its own, and the orders of that seed:

    seed of instrument k     bits(INSTRUMENTS, k) >> 1, which fits a signed 64-bit column (docs/order-stream.md)
    orders of instrument k   orders // instruments, and one more of the first orders % instruments

Instruments count from 1, as orders do.
"""

from __future__ import annotations

from dataclasses import replace

from numba import njit, uint64

from exchange.market_ids import HIGHEST_NUMBER
from exchange.settings import RunSettings

STEP = uint64(0x9E3779B97F4A7C15)
# The purposes of random numbers besides the orders themselves.
ARRIVALS = 1
"""Gaps between arrivals."""
MID = 2
"""The mid around which prices lie."""
NOISE = 3
"""The distances of prices from the mid."""
INSTRUMENTS = 4
"""Seeds of instruments."""
MIX = 5
"""Kinds of messages, and the ages of the orders that requests name."""
INSTRUMENT_CHOICE = 6
"""The instruments of orders, of several at one engine."""


@njit(inline="always")
def mix(z: int) -> int:
    """Mix the bits of z: the finalizer of SplitMix64."""
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@njit(cache=True)
def stream_key(seed: int) -> int:
    """Return the key of a seed's orders."""
    return mix(uint64(seed) + STEP)


@njit(cache=True)
def purpose_key(seed: int, purpose: int) -> int:
    """Return the key of a seed's random numbers for another purpose than orders."""
    return mix(stream_key(seed) + (uint64(1 << 32) + uint64(purpose)) * STEP)


@njit(cache=True)
def purpose_bits(seed: int, purpose: int, number: int) -> int:
    """Return the bits of this number for this purpose."""
    return mix(purpose_key(seed, purpose) + uint64(number) * STEP)


def instrument_seed(seed: int, instrument: int) -> int:
    return int(purpose_bits(uint64(seed), uint64(INSTRUMENTS), uint64(instrument))) >> 1


def settings_of_pair(settings: RunSettings, pair: int) -> RunSettings:
    """Return a run's settings with the seed of this pair: the run's seed for pair 1, instrument k's for pair k."""
    if pair == 1:
        return settings
    return replace(settings, seed=instrument_seed(settings.seed, pair))


def settings_of_gateway(settings: RunSettings, gateway: int) -> RunSettings:
    """Return the settings of one gateway of a run: its pair's; of a market's gateways, its share of them.

    Shares of orders and window are whole numbers, and those of all gateways add up to the run's orders and window.
    """
    own = settings_of_pair(settings, gateway)
    gateways = settings.gateways
    if not settings.is_market:
        return own
    orders_per_s = None if own.orders_per_s is None else own.orders_per_s / gateways
    orders = HIGHEST_NUMBER if own.orders is None else instrument_orders(own.orders, gateways, gateway)
    window = None if own.window is None else max(instrument_orders(own.window, gateways, gateway), 1)
    return replace(
        own,
        gateways=1,
        quotes_to="all",
        orders_per_s=orders_per_s,
        orders=orders,
        window=window,
        cpus={},  # they name the market's components, which one gateway does not have
    )


def instrument_orders(orders: int, instruments: int, instrument: int) -> int:
    """Return how many of all orders are the instrument's. The numbers of all instruments add up to `orders`."""
    share = orders // instruments
    if instrument <= orders % instruments:
        share += 1
    return share
