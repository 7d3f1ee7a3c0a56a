"""streams: several independent streams at the same time.

    publisher 1  ══▶  consumer 1
    publisher 2  ══▶  consumer 2         each PUSH to PULL, on a connection of its own, in processes of its own
    ...               ...
    publisher s  ══▶  consumer s

In all: every message, from the first that one consumer had to the last that one had. Of a stream: the middle one's.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

import click

from messaging.benchmark import Asked, Benchmark, Cell, Column, Counts, Figures, Plot, Point, Published
from messaging.options import COUNT, Numbers, sizes
from messaging.places import Places
from messaging.reckoning import figures_of_each, flow_figures
from messaging.roles import Role, Told
from messaging.streams import consumers_of, stream_roles, wrong_with_streams

COUNTS = Counts(broker=50_000, brokerless=1_000_000, total_bytes=1 << 27)
STREAMS = click.Option(["--streams"], type=Numbers("streams", 1, 256), default="1,2,4,8", show_default=True,
                       metavar="S[,...]", help="How many streams at the same time.")  # fmt: skip
ALL = Published("small messages, all streams on 8 cores", "about 4 M/s", level=4e6)
FULL = Published("10 GbE is full (on its slot) from 512 bytes on", "5.6 Gb/s", level=5_600.0)


def points(asked: Asked) -> list[Point]:
    return [{"size_bytes": size, "streams": streams} for size in asked["sizes"] for streams in asked["streams"]]


def roles(cell: Cell, places: Places) -> list[Role]:
    return stream_roles(cell, places, cell.count(COUNTS), cell.point["streams"])


def judge(cell: Cell, told: Mapping[str, Told]) -> list[str]:
    return wrong_with_streams(told, cell.count(COUNTS), cell.point["streams"])


def figures(cell: Cell, told: Mapping[str, Told]) -> Figures:
    consumers = consumers_of(told)
    found, each = flow_figures(cell.size, consumers), figures_of_each(cell.size, consumers, "messages_per_s")
    if not found or not each:
        return found
    of_one = median(each)
    return {**found, "megabits_per_s": 8 * found["megabytes_per_s"],
            "stream_messages_per_s": of_one, "stream_between_arrivals_ns": 1e9 / of_one}  # fmt: skip


BENCHMARK = Benchmark(
    name="streams",
    about="several independent streams at once: rate in all, and of a stream",
    paper="ZeroMQ 0.2 tests (2007), scaling on multiple cores",
    points=points,
    roles=roles,
    judge=judge,
    figures=figures,
    columns=(
        Column("messages_per_s", "messages/s, all", with_interval=True),
        Column("megabits_per_s", "Mb/s, all"),
        Column("stream_messages_per_s", "of a stream", with_interval=True),
        Column("stream_between_arrivals_ns", "its ns apart"),
    ),
    plots=(
        Plot("All streams", "messages_per_s", "messages/s", x="streams", x_unit="streams", beside=(ALL,)),
        Plot("All streams, in megabits", "megabits_per_s", "Mb/s", x="streams", x_unit="streams", beside=(FULL,)),
        Plot("Density of a stream", "stream_between_arrivals_ns", "ns", x="streams", x_unit="streams"),
    ),
    published=(
        ALL,
        FULL,
        Published("64 KiB, one stream and two", "3 and 4.5 Gb/s"),
        Published("32 bytes, between arrivals of a stream: of one stream and of two", "400 and 600 ns"),
    ),
    options=(sizes("32,512,64KiB"), COUNT, STREAMS),
    transports="zeromq",
    quick={"sizes": (32, 65536), "streams": (1, 2, 4)},
)
