"""Many instruments of one seed, each with the order stream that a tape of its own seed has.

    seed of instrument k     bits(INSTRUMENTS, k) >> 1, which fits a signed 64-bit column; docs/workload.md has `bits`
    orders of instrument k   orders // instruments, and one more of the first orders % instruments

Instruments count from 1, as orders do.
"""

from __future__ import annotations

from dataclasses import replace

from numba import uint64

from exchange.settings import RunSettings
from gateway.random_bits import INSTRUMENTS, bits_beside


def instrument_seed(seed: int, instrument: int) -> int:
    """A function of both alone."""
    return int(bits_beside(uint64(seed), uint64(INSTRUMENTS), uint64(instrument))) >> 1


def settings_of_pair(settings: RunSettings, pair: int) -> RunSettings:
    """The first pair of a run has the orders of its seed, pair k those of instrument k."""
    return settings if pair == 1 else replace(settings, seed=instrument_seed(settings.seed, pair))


def instrument_orders(orders: int, instruments: int, instrument: int) -> int:
    """Its share of all orders; over all instruments they add up to exactly those."""
    return orders // instruments + (instrument <= orders % instruments)
