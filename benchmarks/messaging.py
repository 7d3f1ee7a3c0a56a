"""The rig of the messaging benchmarks against C: `exchange bench` beside programs that only send and receive.

    ours   exchange bench throughput, latency, de-spsc: everything numbered, stamped, checked
    C      reference/zeromq_messages.cpp on the same libzmq; reference/amqp_flow.cpp on rabbitmq-c

Messages, sizes, exchanges, high-water marks and clock readings are the same, and the two sides run in turns. Over AMQP
the clock of both sides runs from the first publish to the last delivery.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.amqp import node, url
from benchmarks.comparison import LONGEST_COMMAND_S, BenchmarkRow, Cost, Measure, Record, in_turns, record_of
from benchmarks.cpp import built, libzmq
from transports.rabbitmq import Node, RabbitMqMissing

FLOWS = {8: 10_000_000, 64: 8_000_000}
"""Number of messages of a flow over ZeroMQ, by their size in bytes."""
BOUNCES = 20_000
"""Number of round trips over ZeroMQ."""
LARGE = 1 << 20
"""The size in bytes of a message whose MB/s are compared, in place of messages/s."""
AMQP_FLOWS = {8: 200_000, 64: 200_000, LARGE: 256}
"""Number of messages of a flow over AMQP, by their size in bytes."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Compare ZeroMQ's throughput and latency, AMQP's messages/s and bandwidth."""
    program = built("zeromq_messages", *libzmq())
    for size, messages in FLOWS.items():
        in_our_rig = partial(flow_per_s, size, messages)
        ours, theirs = in_turns(in_our_rig, in_c(program, "flow", size, messages), repeats)
        yield BenchmarkRow(
            f"bench throughput, zeromq, {size} bytes",
            "C on libzmq",
            "messages/s",
            ours,
            theirs,
            required=0.95,
            hoped_for=1.0,
        )
    ours, theirs = in_turns(lambda: bounce_us(8), in_c(program, "bounce", 8, BOUNCES), repeats)
    yield Cost("bench latency, zeromq, round trip p50", "C on libzmq", "us", ours, theirs, required=1.1, hoped_for=1.05)
    try:
        with node() as broker:
            yield from over_amqp(broker, repeats)
    except RabbitMqMissing as missing:
        print(missing)


def over_amqp(broker: Node, repeats: int) -> Iterator[BenchmarkRow]:
    """Compare messages/s of small messages, and MB/s of large messages."""
    program = built("amqp_flow", "-lrabbitmq") if Path("/usr/include/amqp.h").exists() else None
    for size, messages in AMQP_FLOWS.items():
        in_our_rig = partial(amqp_per_s, broker, size, messages)
        reference = in_c(program, broker.port, broker.user, broker.password, messages, size)
        ours, theirs = in_turns(in_our_rig, reference, repeats)
        title = f"bench de-spsc, amqp, {size:,} bytes"
        if size < LARGE:
            yield BenchmarkRow(title, "rabbitmq-c", "messages/s", ours, theirs, required=0.95, hoped_for=1.0)
        else:
            megabytes = size / 1e6
            ours = [megabytes * messages_per_s for messages_per_s in ours]
            theirs = [megabytes * messages_per_s for messages_per_s in theirs]
            yield BenchmarkRow(title, "rabbitmq-c", "MB/s", ours, theirs, required=0.8, hoped_for=1.0)


def flow_per_s(size: int, messages: int) -> float:
    """Measure our messages/s over ZeroMQ."""
    (cell,) = bench("throughput", "zeromq", size, messages)["rows"]
    return float(cell["figures"]["messages_per_s"]["median"])


def bounce_us(size: int) -> float:
    """Measure our median round trip over ZeroMQ."""
    (cell,) = bench("latency", "zeromq", size, BOUNCES)["rows"]
    return float(cell["figures"]["round_trip_p50_us"]["median"])


def amqp_per_s(broker: Node, size: int, messages: int) -> float:
    """Measure our messages/s over AMQP, from the first publish to the last delivery."""
    (cell,) = bench("de-spsc", url(broker), size, messages)["rows"]
    roles = cell["repeats"][0]["roles"]
    return messages * 1e9 / float(roles["consumer"]["last_ns"] - roles["publisher"]["first_ns"])


def bench(name: str, transport: str, size: int, messages: int) -> Record:
    """Measure one cell once; returns its bench.json."""
    return record_of("bench", name, "--transport", transport, "--sizes", size, "--count", messages, "--repeats", 1)


def in_c(program: Path | None, *words: object) -> Measure | None:
    """Return a function that runs the C program, and returns the figure that it prints; None if it is not built."""
    if program is None:
        return None
    command = [str(program), *map(str, words)]

    def run() -> float:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_COMMAND_S, check=True)
        return float(finished.stdout)

    return run
