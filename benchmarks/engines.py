"""Compares two engines, which share out 100 instruments, with one engine: flat out, and at 8,000 orders/s in all.

    gateway, ... ── orders of instruments 0, 2, ... ──▶ engine
                 ── orders of instruments 1, 3, ... ──▶ engine.2

With one gateway the rows show what a second link costs the gateway; with four, what a second engine is worth where one
engine has several gateways. Flat out on two processors all components share them, so a second engine can gain little
there: read the rows beside the number of processors below the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.comparison import BenchmarkRow, Cost, Record, in_turns, permitted_priority, record_of

TRANSPORT = "zeromq"
INSTRUMENTS = 100
RATE = 8_000
PACED_ORDERS = 32_000
FLAT_OUT_ORDERS = 1_000_000
FEW = 5
"""Repeats of rows that take long."""
NUMBERS_OF_GATEWAYS = {"one gateway": 1, "four gateways": 4}


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure two engines against one: the rate flat out, and p50 at a fixed rate, of one and of four gateways."""
    few = min(repeats, FEW)
    for words, gateways in NUMBERS_OF_GATEWAYS.items():
        ours, reference = in_turns(partial(flat_out, 2, gateways), partial(flat_out, 1, gateways), few)
        title = f"{words} at two engines, {INSTRUMENTS} instruments over ZeroMQ, flat out"
        yield BenchmarkRow(title, "one engine", "orders/s", ours, reference)
    for words, gateways in NUMBERS_OF_GATEWAYS.items():
        ours, reference = in_turns(partial(p50_us, 2, gateways), partial(p50_us, 1, gateways), few)
        title = f"completion p50 from due of {words} at two engines, {RATE:,} orders/s in all"
        yield Cost(title, "one engine", "us", ours, reference)


def run(engines: int, gateways: int, rate: object, orders: int) -> Record:
    """Run the exchange; returns run.json."""
    market = ("--engines", engines, "--instruments", INSTRUMENTS, "--gateways", gateways)
    load = ("--rate", rate, "--orders", orders, "--priority", permitted_priority())
    return record_of("run", "--no-page", "--transport", TRANSPORT, *market, *load)


def flat_out(engines: int, gateways: int) -> float:
    """Run as fast as it goes; returns orders answered a second."""
    return float(run(engines, gateways, "max", FLAT_OUT_ORDERS)["rates"]["orders_per_s"])


def p50_us(engines: int, gateways: int) -> float:
    """Run at a fixed rate in all; returns p50 from due, in us."""
    return float(run(engines, gateways, RATE, PACED_ORDERS)["completion_us"]["due"]["p50"])
