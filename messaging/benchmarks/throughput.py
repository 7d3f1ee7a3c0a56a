"""throughput: messages blasted one way, timed where they arrive.

    publisher  ══ as fast as it goes ══▶  consumer      PUSH to PULL; over AMQP through a direct exchange

The rate is the consumer's, from its first message to its last. So whatever is slowest on the way has its effect on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from messaging.benchmark import Asked, Benchmark, Cell, Column, Counts, Figures, Plot, Point, Published
from messaging.options import COUNT, sizes
from messaging.places import Places
from messaging.reckoning import flow_figures
from messaging.roles import Role, Told
from messaging.streams import consumers_of, stream_roles, wrong_with_streams

COUNTS = Counts(brokerless=5_000_000, total_bytes=1 << 29)
SMALL = Published("small messages, one stream", "2.6 M/s", level=2.6e6)
BANDWIDTH = Published("one stream of any size up to 64 KiB", "under 3 Gb/s", level=3_000.0)


def points(asked: Asked) -> list[Point]:
    return [{"size_bytes": size} for size in asked["sizes"]]


def roles(cell: Cell, places: Places) -> list[Role]:
    return stream_roles(cell, places, cell.count(COUNTS))


def judge(cell: Cell, told: Mapping[str, Told]) -> list[str]:
    return wrong_with_streams(told, cell.count(COUNTS))


def figures(cell: Cell, told: Mapping[str, Told]) -> Figures:
    found = flow_figures(cell.size, consumers_of(told))
    return {**found, "megabits_per_s": 8 * found["megabytes_per_s"]} if found else {}


BENCHMARK = Benchmark(
    name="throughput",
    about="messages blasted one way, timed where they arrive: messages/s and Mb/s by size",
    paper="ZeroMQ 0.2 tests (2007), throughput",
    points=points,
    roles=roles,
    judge=judge,
    figures=figures,
    columns=(
        Column("messages_per_s", "messages/s", with_interval=True),
        Column("megabits_per_s", "Mb/s", with_interval=True),
        Column("seconds", "seconds"),
    ),
    plots=(
        Plot("Throughput", "messages_per_s", "messages/s", beside=(SMALL,)),
        Plot("Throughput in megabits", "megabits_per_s", "Mb/s", beside=(BANDWIDTH,)),
    ),
    published=(SMALL, BANDWIDTH, Published("its AMQP engine, 6 bytes", "about 700,000/s")),
    options=(sizes("1B..64KiB"), COUNT),
    quick={"sizes": (8, 64, 1024, 65536)},
)
