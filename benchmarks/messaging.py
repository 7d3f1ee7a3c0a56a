"""The rig of the messaging benchmarks against C: `exchange bench` beside programs that only send and receive.

    ours   exchange bench throughput, latency, de-spsc: everything numbered, stamped, checked
    C      reference/zeromq_messages.cpp on the same libzmq; reference/amqp_flow.cpp on rabbitmq-c

Messages, sizes, exchanges, high-water marks and clock readings are the same, and the two sides run in turns. Over AMQP
the clock of both sides runs from the first publish to the last delivery.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.amqp import node, url
from benchmarks.comparison import LONGEST_COMMAND_S, BenchmarkRow, Cost, Measure, Record, in_turns, record_of
from benchmarks.cpp import built, libzmq
from transports.rabbitmq import Node, RabbitMqMissing

FLOWS = {8: 10_000_000, 64: 8_000_000}
"""Messages by size."""
BOUNCES = 20_000
AMQP_FLOWS = {8: 200_000, 64: 200_000, 1 << 20: 256}
"""Messages by size, over AMQP; of the largest MB/s are compared."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """ZeroMQ's throughput and latency, AMQP's messages/s and bandwidth."""
    program = built("zeromq_messages", *libzmq())
    for size, messages in FLOWS.items():
        ours, theirs = in_turns(lambda: flow_per_s(size, messages), in_c(program, "flow", size, messages), repeats)  # noqa: B023
        yield BenchmarkRow(
            f"bench throughput, zeromq, {size} bytes", "C on libzmq", "messages/s", ours, theirs, 0.95, 1.0
        )
    ours, theirs = in_turns(lambda: bounce_us(8), in_c(program, "bounce", 8, BOUNCES), repeats)
    yield Cost("bench latency, zeromq, round trip p50", "C on libzmq", "us", ours, theirs, 1.1, 1.05)
    try:
        with node() as broker:
            yield from over_amqp(broker, repeats)
    except RabbitMqMissing as missing:
        print(missing)


def over_amqp(broker: Node, repeats: int) -> Iterator[BenchmarkRow]:
    """Messages/s of small messages, MB/s of large ones."""
    program = built("amqp_flow", "-lrabbitmq") if Path("/usr/include/amqp.h").exists() else None
    for size, messages in AMQP_FLOWS.items():
        unit, factor, reach = ("MB/s", size / 1e6, 0.8) if size == 1 << 20 else ("messages/s", 1.0, 0.95)
        ours, theirs = in_turns(
            lambda: factor * amqp_per_s(broker, size, messages),  # noqa: B023
            amqp_in_c(program, broker, size, messages, factor),
            repeats,
        )
        yield BenchmarkRow(f"bench de-spsc, amqp, {size:,} bytes", "rabbitmq-c", unit, ours, theirs, reach, 1.0)


def flow_per_s(size: int, messages: int) -> float:
    (cell,) = bench("throughput", "zeromq", size, messages)["rows"]
    return float(cell["figures"]["messages_per_s"]["median"])


def bounce_us(size: int) -> float:
    (cell,) = bench("latency", "zeromq", size, BOUNCES)["rows"]
    return float(cell["figures"]["round_trip_p50_us"]["median"])


def amqp_per_s(broker: Node, size: int, messages: int) -> float:
    (cell,) = bench("de-spsc", url(broker), size, messages)["rows"]
    roles = cell["repeats"][0]["roles"]
    return messages * 1e9 / float(roles["consumer"]["last_ns"] - roles["publisher"]["first_ns"])


def bench(name: str, transport: str, size: int, messages: int) -> Record:
    """The bench.json of one repeat of one cell."""
    return record_of("bench", name, "--transport", transport, "--sizes", size, "--count", messages, "--repeats", 1)


def in_c(program: Path | None, *words: object) -> Measure | None:
    """A figure that the C program prints."""
    if program is None:
        return None
    command = [str(program), *map(str, words)]
    return lambda: float(
        subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_COMMAND_S, check=True).stdout
    )


def amqp_in_c(program: Path | None, broker: Node, size: int, messages: int, factor: float) -> Measure | None:
    measure = in_c(program, broker.port, broker.user, broker.password, messages, size)
    return None if measure is None else lambda: factor * measure()
