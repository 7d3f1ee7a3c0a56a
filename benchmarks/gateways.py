"""Compares several gateways at one engine with one gateway: what fan-in costs, flat out and at 8,000 orders/s in all.

    gateway   ── orders ──▶  engine
    gateway.2 ── orders ──▶  engine
    ...
    gateway   ◀── its answers, and every quote ──  engine

By default every quote goes to all gateways, so sixteen gateways are sent several times as many messages as one. In the
last row the sixteen get no quotes. The one gateway gets quotes in all rows: `exchange run` refuses --quotes-to for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.comparison import BenchmarkRow, Cost, Record, in_turns, permitted_priority, record_of

TRANSPORT = "zeromq"
RATE = 8_000
PACED_ORDERS = 32_000
FLAT_OUT_ORDERS = 1_000_000
FEW = 5
"""Repeats of rows that take long."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure the rate of four gateways flat out, and p50 of sixteen at 500 orders/s each, against one gateway."""
    few = min(repeats, FEW)
    several, one = in_turns(partial(flat_out, 4), partial(flat_out, 1), few)
    yield BenchmarkRow(
        "four gateways at one engine over ZeroMQ, flat out",
        "one gateway",
        "orders/s",
        several,
        one,
        required=0.7,
        hoped_for=0.9,
    )
    for words, options in (("", ()), (", without quotes", ("--quotes-to", "none"))):
        several, one = in_turns(partial(p50_us, 16, *options), partial(p50_us, 1), few)
        yield Cost(
            f"completion p50 from due of sixteen gateways at {RATE // 16} orders/s each{words}",
            f"one at {RATE:,}, with quotes",
            "us",
            several,
            one,
            required=1.5,
            hoped_for=1.2,
        )


def run(gateways: int, rate: object, orders: int, *options: str) -> Record:
    """Run the exchange; returns run.json."""
    load = ("--gateways", gateways, "--rate", rate, "--orders", orders, *options)
    return record_of("run", "--no-page", "--transport", TRANSPORT, *load, "--priority", permitted_priority())


def flat_out(gateways: int) -> float:
    """Run as fast as it goes; returns orders answered a second."""
    return float(run(gateways, "max", FLAT_OUT_ORDERS)["rates"]["orders_per_s"])


def p50_us(gateways: int, *options: str) -> float:
    """Run at a fixed rate in all; returns p50 from due, in us."""
    return float(run(gateways, RATE, PACED_ORDERS, *options)["completion_us"]["due"]["p50"])
