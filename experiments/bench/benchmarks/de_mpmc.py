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

from experiments.bench.answer import wrong_with
from experiments.bench.benchmark import Asked, Benchmark, Cell, Column, Counts, Figures, Plot, Point
from experiments.bench.options import COUNT, Numbers, sizes
from experiments.bench.places import Places
from experiments.bench.reckoning import flow_figures
from experiments.bench.roles import Role, Told

COUNTS = Counts(broker=50_000, brokerless=500_000, total_bytes=1 << 27)
PAIRS = click.Option(["--pairs"], type=Numbers("pairs", 1, 256), default="1,2,4,8", show_default=True,
                     metavar="K[,...]", help="How many pairs at the same time.")  # fmt: skip


def points(asked: Asked) -> list[Point]:
    return [{"size_bytes": size, "pairs": pairs} for size in asked["sizes"] for pairs in asked["pairs"]]


def roles(cell: Cell, places: Places) -> list[Role]:
    from experiments.bench.flow import Consume, Publish

    count, found = cell.count(COUNTS), []
    for pair in range(1, cell.point["pairs"] + 1):
        listener, connector = places.pair(cell.size, name=str(pair), one_way=True)
        found += [
            Role(f"consumer {pair}", Consume(cell.size, count), (listener,)),
            Role(f"publisher {pair}", Publish(cell.size, count), (connector,), begins=True),
        ]
    return found


def judge(cell: Cell, told: Mapping[str, Told]) -> list[str]:
    """Pair by pair, so that what one got of another's would be seen."""
    return [
        wrong for pair in range(1, cell.point["pairs"] + 1)
        for sender, receiver in [(f"publisher {pair}", f"consumer {pair}")]
        for wrong in wrong_with({sender: told[sender]}, {receiver: told[receiver]}, cell.count(COUNTS))
    ]  # fmt: skip


def figures(cell: Cell, told: Mapping[str, Told]) -> Figures:
    consumers = [of_role for name, of_role in told.items() if name.startswith("consumer")]
    each = [flow_figures(cell.size, [consumer]).get("messages_per_s") for consumer in consumers]
    measured = [per_s for per_s in each if per_s is not None]
    of_a_pair = {"pair_messages_per_s": median(measured)} if measured else {}
    return {**flow_figures(cell.size, consumers), **of_a_pair}


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
