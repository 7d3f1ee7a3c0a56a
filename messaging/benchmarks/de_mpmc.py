"""DE-MPMC: direct exchange, multiple publishers, multiple consumers.

    publisher 1  ══ N messages ══▶  [                 ▸ queue 1]  ══▶  consumer 1
    publisher 2  ══ N messages ══▶  [ direct exchange ▸ queue 2]  ══▶  consumer 2
    ...                             [                 ▸ queue k]       ...
    each publisher  ◀── one empty reply, once its consumer has N

Brokerless: k connections, PUSH to PULL, that have nothing in common but the machine.

k independent pairs on one direct exchange, a routing key each, all at the same time; k grows. The aggregate is of all
messages, from the first that one consumer had to the last that one had; a pair's is its consumer's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

import click

from messaging.benchmark import Asked, Benchmark, Cell, Column, Counts, Figures, Plot, Point
from messaging.options import COUNT, Numbers, sizes
from messaging.places import Places
from messaging.reckoning import figures_of_each, flow_figures
from messaging.roles import Role, Told
from messaging.streams import consumers_of, stream_roles, wrong_with_streams

COUNTS = Counts(broker=50_000, brokerless=500_000, total_bytes=1 << 27)
PAIRS = click.Option(["--pairs"], type=Numbers("pairs", 1, 256), default="1,2,4,8", show_default=True,
                     metavar="K[,...]", help="How many pairs at the same time.")  # fmt: skip


def points(asked: Asked) -> list[Point]:
    return [{"size_bytes": size, "pairs": pairs} for size in asked["sizes"] for pairs in asked["pairs"]]


def roles(cell: Cell, places: Places) -> list[Role]:
    return stream_roles(cell, places, cell.count(COUNTS), cell.point["pairs"])


def judge(cell: Cell, told: Mapping[str, Told]) -> list[str]:
    return wrong_with_streams(told, cell.count(COUNTS), cell.point["pairs"])


def figures(cell: Cell, told: Mapping[str, Told]) -> Figures:
    """Of all together, and of the middle one."""
    consumers = consumers_of(told)
    each = figures_of_each(cell.size, consumers, "messages_per_s")
    return {**flow_figures(cell.size, consumers), **({"pair_messages_per_s": median(each)} if each else {})}


BENCHMARK = Benchmark(
    name="de-mpmc",
    about="k pairs at once on one direct exchange: rate in all and of a pair, CPU, by k",
    paper="AMQP over InfiniBand (2008), 3.2 and figures 4a, 4b",
    points=points,
    roles=roles,
    judge=judge,
    figures=figures,
    columns=(
        Column("messages_per_s", "messages/s, all", with_interval=True),
        Column("megabytes_per_s", "MB/s, all"),
        Column("pair_messages_per_s", "of a pair", with_interval=True),
        Column("latency_mean_us", "mean us"),
    ),
    plots=(
        Plot("Bandwidth of all pairs", "megabytes_per_s", "MB/s", x="pairs", x_unit="pairs"),
        Plot("Message rate of all pairs", "messages_per_s", "messages/s", x="pairs", x_unit="pairs"),
        Plot("CPU of the broker", "broker_cores", "cores", x="pairs", x_unit="pairs", linear=True),
        Plot("CPU of the consumers", "consumer_cores", "cores", x="pairs", x_unit="pairs", linear=True),
        Plot("CPU of the publishers", "publisher_cores", "cores", x="pairs", x_unit="pairs", linear=True),
    ),
    options=(sizes("64,16KiB"), COUNT, PAIRS),
    quick={"sizes": (64,), "pairs": (1, 2, 8)},
)
