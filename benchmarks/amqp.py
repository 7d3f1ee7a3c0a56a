"""Compares the compiled AMQP client with pika, and the delivery guarantees with each other.

benchmarks/messaging.py also compares the compiled client with rabbitmq-c. The rows share one private RabbitMQ node,
except for the row on a node's start. Without RabbitMQ nothing is measured.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.comparison import BenchmarkRow, Limit, Record, in_turns, record_of, usage_of
from transports.amqp.address import PASSWORD
from transports.rabbitmq import Node, RabbitMqMissing, private_node

SUSTAINED_S = 3
"""Seconds for which a rate must be sustained."""
STEP = 1.08
"""The ratio of a rate to the next lower one."""
RATES = 28
"""The number of rates that are tried: down to an eighth of the flat-out rate."""
PACED_ORDERS = 40_000
UNCOMPILED_CPU_US_PER_ORDER = 65.0
"""The gateway's CPU for an order over AMQP, measured before its turns were compiled: 0.52 processors at 8,000/s."""
FEW = 3
"""Repeats for figures that take long and hardly vary."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure a node's start, the exchange over each client, completion times, and delivery guarantees."""
    few = min(repeats, FEW)
    try:
        starts_s, _ = in_turns(start_s, None, few)
    except RabbitMqMissing as missing:
        print(missing)
        return
    yield Limit(title="private RabbitMQ node: start to ready", unit="s", ours=starts_s, required=6, hoped_for=4.5)
    with node() as broker:
        with_pika = ("--amqp-client", "pika")

        ours, pika = in_turns(lambda: sustained(broker), lambda: sustained(broker, *with_pika), min(few, 2))
        yield BenchmarkRow(
            "exchange over AMQP, sustained: compiled", "pika", "orders/s", ours, pika, required=4, hoped_for=6
        )

        ours, pika = in_turns(lambda: flat_out(broker), lambda: flat_out(broker, *with_pika), few)
        yield BenchmarkRow("exchange over AMQP, flat out: compiled", "pika", "orders/s", ours, pika)

        paced(broker)  # a warm-up that does not count
        records = [paced(broker) for _ in range(repeats)]
        p99_ms = [record["completion_us"]["due"]["p99"] / 1e3 for record in records]
        yield Limit(
            title="completion p99 from due over AMQP at 8,000 orders/s", unit="ms", ours=p99_ms, required=2, hoped_for=1
        )

        cpu_us = [usage_of(record, "gateway", "cpu_s") * 1e6 / PACED_ORDERS for record in records]
        yield Limit(
            title="gateway's CPU over AMQP at 8,000 orders/s",
            unit="us an order",
            ours=cpu_us,
            required=0.7 * UNCOMPILED_CPU_US_PER_ORDER,
            hoped_for=0.5 * UNCOMPILED_CPU_US_PER_ORDER,
        )

        confirmed = ("--delivery", "confirmed")
        confirmed_rates, lossy_rates = in_turns(lambda: flat_out(broker, *confirmed), lambda: flat_out(broker), few)
        yield BenchmarkRow(
            "exchange over AMQP, flat out: confirmed",
            "lossy",
            "orders/s",
            confirmed_rates,
            lossy_rates,
            required=0.4,
            hoped_for=0.6,
        )


@contextmanager
def node() -> Iterator[Node]:
    """Start a private node. Its password is in the environment, where components look for it."""
    with tempfile.TemporaryDirectory() as folder, private_node(Path(folder) / "broker") as private:
        previous_password = os.environ.get(PASSWORD)
        os.environ[PASSWORD] = private.password
        try:
            yield private
        finally:
            if previous_password is None:
                del os.environ[PASSWORD]
            else:
                os.environ[PASSWORD] = previous_password


def start_s() -> float:
    """Measure the seconds from a node's start until it takes connections."""
    start_ns = time.monotonic_ns()
    with tempfile.TemporaryDirectory() as folder, private_node(Path(folder) / "broker"):
        return (time.monotonic_ns() - start_ns) / 1e9


def url(broker: Node) -> str:
    """The node's address for `--transport`."""
    return f"amqp://{broker.user}@{broker.host}:{broker.port}/%2F"


def run(broker: Node, *options: str) -> Record:
    """Run the exchange over the node; returns run.json."""
    return record_of("run", "--no-spark", "--transport", url(broker), *options)


def flat_out(broker: Node, *options: str) -> float:
    """Measure the orders/s of a run as fast as it goes."""
    record = run(broker, "--rate", "max", "--orders", "100000", *options)
    return float(record["rates"]["orders_per_s"])


def sustained(broker: Node, *options: str) -> float:
    """Search the highest rate, within STEP, at which a run of SUSTAINED_S sends on time and is answered as fast.

    RuntimeError if no rate is sustained.
    """
    highest = flat_out(broker, *options) * STEP
    rates = [highest / STEP**step for step in range(RATES)]
    not_sustained = -1
    sustained = RATES
    while sustained - not_sustained > 1:
        middle = (not_sustained + sustained) // 2
        if is_sustained(broker, rates[middle], *options):
            sustained = middle
        else:
            not_sustained = middle
    if sustained == RATES:
        raise RuntimeError(f"no rate of {rates[-1]:,.0f} orders/s or more is sustained")
    return rates[sustained]


def is_sustained(broker: Node, rate: float, *options: str) -> bool:
    """Return whether one of two runs at the rate is complete; one may fail, since the machine may be busy in it."""
    paced_options = ("--rate", f"{rate:.0f}", "--orders", f"{rate * SUSTAINED_S:.0f}", *options)
    return any(run(broker, *paced_options)["status"] == "complete" for _ in range(2))


def paced(broker: Node) -> Record:
    """Run at 8,000 orders/s; returns run.json."""
    return run(broker, "--rate", "8000", "--orders", str(PACED_ORDERS))
