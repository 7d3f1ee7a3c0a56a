"""Compares our clients over a broker, and delivery guarantees, with one another; `messaging` has rabbitmq-c as well.

All rows use one private RabbitMQ node; its own row starts it several times. Without RabbitMQ nothing is measured.
"""

from __future__ import annotations

import bisect
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.comparison import BenchmarkRow, Limit, Record, in_turns, record_of, usage_of
from transports.amqp.address import PASSWORD
from transports.rabbitmq import Node, RabbitMqMissing, private_node

SECONDS = 3
"""How long a rate has to be sustained."""
STEP = 1.08
"""The ratio of a rate to the next lower one."""
RATES = 28
"""The number of rates that are tried: down to an eighth of the flat-out rate."""
PACED_ORDERS = 40_000
LOOP_IN_PYTHON_US = 65.0
"""The gateway's CPU for an order over AMQP before its turns were compiled: 0.52 processors at 8,000 orders/s."""
FEW = 3
"""Repeats for figures that take long and hardly vary."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure a node's start, the exchange over each client, completion times, and delivery guarantees."""
    few = min(repeats, FEW)
    try:
        starts = [start_s() for _ in range(few + 1)]
    except RabbitMqMissing as missing:
        print(missing)
        return
    yield Limit("private RabbitMQ node: start to ready", "", "s", starts[1:], [], reach=6, aim=4.5)
    with node() as broker:
        with_pika = ("--amqp-client", "pika")

        ours, pika = in_turns(lambda: sustained(broker), lambda: sustained(broker, *with_pika), min(few, 2))
        yield BenchmarkRow("exchange over AMQP, sustained: compiled", "pika", "orders/s", ours, pika, reach=4, aim=6)

        ours, pika = in_turns(lambda: flat_out(broker), lambda: flat_out(broker, *with_pika), few)
        yield BenchmarkRow("exchange over AMQP, flat out: compiled", "pika", "orders/s", ours, pika)

        records = [paced(broker) for _ in range(repeats + 1)][1:]
        p99_ms = [record["completion_us"]["due"]["p99"] / 1e3 for record in records]
        yield Limit("completion p99 from due over AMQP at 8,000 orders/s", "", "ms", p99_ms, [], reach=2, aim=1)

        cpu_us = [usage_of(record, "gateway", "cpu_s") * 1e6 / PACED_ORDERS for record in records]
        what = "gateway's CPU over AMQP at 8,000 orders/s"
        yield Limit(what, "", "us an order", cpu_us, [], reach=0.7 * LOOP_IN_PYTHON_US, aim=0.5 * LOOP_IN_PYTHON_US)

        confirmed = ("--delivery", "confirmed")
        sure, lossy = in_turns(lambda: flat_out(broker, *confirmed), lambda: flat_out(broker), few)
        yield BenchmarkRow(
            "exchange over AMQP, flat out: confirmed", "lossy", "orders/s", sure, lossy, reach=0.4, aim=0.6
        )


@contextmanager
def node() -> Iterator[Node]:
    """Start a private node. Its password is in the environment, where components look for it."""
    with tempfile.TemporaryDirectory() as folder, private_node(Path(folder) / "broker") as started:
        before = os.environ.get(PASSWORD)
        os.environ[PASSWORD] = started.password
        try:
            yield started
        finally:
            if before is None:
                del os.environ[PASSWORD]
            else:
                os.environ[PASSWORD] = before


def start_s() -> float:
    """Measure the seconds from a node's start until it takes connections."""
    start_ns = time.monotonic_ns()
    with tempfile.TemporaryDirectory() as folder, private_node(Path(folder) / "broker"):
        return (time.monotonic_ns() - start_ns) / 1e9


def url(broker: Node) -> str:
    return f"amqp://{broker.user}@{broker.host}:{broker.port}/%2F"


def run(broker: Node, *words: str) -> Record:
    """Run the exchange over the node; returns run.json."""
    return record_of("run", "--no-spark", "--transport", f"amqp://{broker.user}@{broker.host}:{broker.port}", *words)


def flat_out(broker: Node, *words: str) -> float:
    """Measure the rate of a run as fast as it goes."""
    return float(run(broker, "--rate", "max", "--orders", "100000", *words)["rates"]["orders_per_s"])


def sustained(broker: Node, *words: str) -> float:
    """Search the highest rate, within STEP, at which a run of SECONDS sends on time and is answered as fast.

    RuntimeError if no rate is.
    """
    fastest = flat_out(broker, *words)
    rates = [fastest * STEP ** (1 - below) for below in range(RATES)]
    reached = bisect.bisect_left(rates, True, key=lambda rate: is_sustained(broker, rate, *words))
    if reached == RATES:
        raise RuntimeError(f"no rate of {rates[-1]:,.0f} orders/s or more is sustained")
    return rates[reached]


def is_sustained(broker: Node, rate: float, *words: str) -> bool:
    """Return whether one of two runs is complete: the machine may be busy in the other."""
    paced = ("--rate", f"{rate:.0f}", "--orders", f"{rate * SECONDS:.0f}", *words)
    return any(run(broker, *paced)["status"] == "complete" for _ in range(2))


def paced(broker: Node) -> Record:
    return run(broker, "--rate", "8000", "--orders", str(PACED_ORDERS))
