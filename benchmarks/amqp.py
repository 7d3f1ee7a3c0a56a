"""Compares our frames through a broker with rabbitmq-c's, and our clients and delivery guarantees with one another.

All rows use one private RabbitMQ node; its own row starts it several times. Without RabbitMQ nothing is measured.
"""

from __future__ import annotations

import bisect
import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.comparison import Row, in_turns, record_of
from benchmarks.cpp import built
from benchmarks.exchange import Figures, Limit, used
from transports.amqp.address import PASSWORD
from transports.frames import FrameBatch
from transports.rabbitmq import Node, RabbitMqMissing, private_node
from transports.registry import connect, listen

MESSAGES, BYTES = 500_000, 10
SECONDS, STEP, RATES = 3, 1.08, 28  # down to an eighth of the flat-out rate
PACED_ORDERS = 40_000
LOOP_IN_PYTHON_US = 65.0
"""The gateway's CPU for an order over AMQP before its turns were compiled: 0.52 processors at 8,000 orders/s."""
FEW = 3
"""Repeats for figures that take long and hardly vary."""


def rows(repeats: int) -> Iterator[Row]:
    """Start, flow, exchange, completion, guarantees."""
    few = min(repeats, FEW)
    try:
        starts = [start_s() for _ in range(few + 1)]
    except RabbitMqMissing as missing:
        print(missing)
        return
    yield Limit("private RabbitMQ node: start to ready", "", "s", starts[1:], [], reach=6, aim=4.5)
    with node() as broker:
        yield flow(broker, repeats)
        ours, plain = in_turns(
            lambda: sustained(broker), lambda: sustained(broker, "--amqp-client", "pika"), min(few, 2)
        )
        yield Row("exchange over AMQP, sustained: compiled", "pika", "orders/s", ours, plain, reach=4, aim=6)
        ours, plain = in_turns(lambda: flat_out(broker), lambda: flat_out(broker, "--amqp-client", "pika"), few)
        yield Row("exchange over AMQP, flat out: compiled", "pika", "orders/s", ours, plain)
        taken = [paced(broker) for _ in range(repeats + 1)][1:]
        p99_ms = [each["completion_us"]["handed_over"]["p99"] / 1e3 for each in taken]
        yield Limit("completion p99 over AMQP at 8,000 orders/s", "", "ms", p99_ms, [], reach=2, aim=1)
        cpu_us = [used(each, "gateway", "cpu_s") * 1e6 / PACED_ORDERS for each in taken]
        what = "gateway's CPU over AMQP at 8,000 orders/s"
        yield Limit(what, "", "us an order", cpu_us, [], reach=0.7 * LOOP_IN_PYTHON_US, aim=0.5 * LOOP_IN_PYTHON_US)
        sure, lossy = in_turns(lambda: flat_out(broker, "--delivery", "confirmed"), lambda: flat_out(broker), few)
        yield Row("exchange over AMQP, flat out: confirmed", "lossy", "orders/s", sure, lossy, reach=0.4, aim=0.6)


@contextmanager
def node() -> Iterator[Node]:
    """A running node, whose password is in the environment, as a component has it."""
    with tempfile.TemporaryDirectory() as folder, private_node(Path(folder) / "broker") as started:
        before = os.environ.get(PASSWORD)
        os.environ[PASSWORD] = started.password
        yield started
        os.environ.pop(PASSWORD) if before is None else os.environ.update({PASSWORD: before})


def start_s() -> float:
    start_ns = time.monotonic_ns()
    with tempfile.TemporaryDirectory() as folder, private_node(Path(folder) / "broker"):
        return (time.monotonic_ns() - start_ns) / 1e9


def url(broker: Node) -> str:
    return f"amqp://{broker.user}@{broker.host}:{broker.port}/%2F"


def flow(broker: Node, repeats: int) -> Row:
    """One-way flow; on both sides, publisher and consumer are a process each."""
    program = built("amqp_flow", "-lrabbitmq") if Path("/usr/include/amqp.h").exists() else None
    words = [str(word) for word in (broker.port, broker.user, broker.password, MESSAGES, BYTES)]

    def in_c() -> float:
        done = subprocess.run([str(program), *words], capture_output=True, text=True, check=True)
        return float(done.stdout)

    ours, theirs = in_turns(lambda: flow_per_s(url(broker)), in_c if program else None, repeats)
    return Row(f"one way through RabbitMQ, {BYTES} bytes", "rabbitmq-c", "messages/s", ours, theirs, 0.8, 1.0)


def flow_per_s(broker_url: str) -> float:
    """Messages/s from the first publish to the last delivery."""
    done, write_end = os.pipe()
    name = f"flow-{time.monotonic_ns()}"
    child = os.fork()
    if child == 0:
        os.write(write_end, struct.pack("<q", consume(broker_url, name, write_end)))
        os._exit(0)
    assert os.read(done, 1) == b"r"
    start_ns = publish(broker_url, name)
    (end_ns,) = struct.unpack("<q", os.read(done, 8))
    os.waitpid(child, 0)
    for end in (done, write_end):
        os.close(end)
    return MESSAGES * 1e9 / float(end_ns - start_ns)


def consume(broker_url: str, name: str, ready: int) -> int:
    link, batch, got = listen(broker_url, name), FrameBatch(1 << 14), 0
    os.write(ready, b"r")
    while got < MESSAGES:
        batch.clear()
        taken = link.receive(batch)
        got += taken
        if not taken:
            link.wait(time.monotonic_ns() + 1_000_000_000)
    end_ns = time.monotonic_ns()
    link.close()
    return end_ns


def publish(broker_url: str, name: str) -> int:
    link = connect(broker_url, name, time.monotonic_ns())
    batch, left, start_ns = FrameBatch.of(*[bytes(BYTES)] * 1000), MESSAGES, time.monotonic_ns()
    first = 0
    while left:
        taken = link.send(batch, first) - first
        left -= taken
        first = (first + taken) % batch.count
        if not taken:
            link.wait(time.monotonic_ns() + 1_000_000_000, readable=False, writable=True)
    assert link.drain(time.monotonic_ns() + 60_000_000_000)
    link.close()
    return start_ns


def run(broker: Node, *words: str) -> Figures:
    """The run.json of a run over the node."""
    return record_of("run", "--no-spark", "--transport", f"amqp://{broker.user}@{broker.host}:{broker.port}", *words)


def flat_out(broker: Node, *words: str) -> float:
    """Answered orders/s at the highest rate."""
    return float(run(broker, "--rate", "max", "--orders", "100000", *words)["rates"]["orders_per_s"])


def sustained(broker: Node, *words: str) -> float:
    """The highest rate, within STEP, at which a run of SECONDS sends on time and is answered as fast. RuntimeError."""
    fastest = flat_out(broker, *words)
    rates = [fastest * STEP ** (1 - below) for below in range(RATES)]
    reached = bisect.bisect_left(rates, True, key=lambda rate: is_sustained(broker, rate, *words))
    if reached == RATES:
        raise RuntimeError(f"no rate of {rates[-1]:,.0f} orders/s or more is sustained")
    return rates[reached]


def is_sustained(broker: Node, rate: float, *words: str) -> bool:
    """Whether one of two runs is complete: the machine may be busy in the other."""
    paced = ("--rate", f"{rate:.0f}", "--orders", f"{rate * SECONDS:.0f}", *words)
    return any(run(broker, *paced)["status"] == "complete" for _ in range(2))


def paced(broker: Node) -> Figures:
    return run(broker, "--rate", "8000", "--orders", str(PACED_ORDERS))
