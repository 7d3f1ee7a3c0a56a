"""DE-SPSC: direct exchange, single publisher, single consumer.

    publisher  ══ N messages of a size ══▶  [direct exchange ▸ queue]  ══▶  consumer
    publisher  ◀── [queue ◂ direct exchange]  ◀── one empty reply, once it has N ──  consumer

Brokerless: PUSH to PULL, and another pair for the reply. Over plain TCP, and in memory: one connection.

The publisher sends as fast as it is let, and then awaits the reply; the next size follows. The rate is the consumer's:
from its first message to its last. Latency is from handing over to receipt, so here it is mostly a wait in queues.
"""

from __future__ import annotations

from collections.abc import Mapping

from messaging.benchmark import Asked, Benchmark, Cell, Column, Counts, Figures, Plot, Point, Published
from messaging.options import COUNT, SIZES
from messaging.places import Places
from messaging.reckoning import flow_figures
from messaging.roles import Role, Told
from messaging.streams import consumers_of, stream_roles, wrong_with_streams

COUNTS = Counts()
PLATEAU = Published("bandwidth over IPoIB, the plateau", "350 MB/s", level=350.0)


def points(asked: Asked) -> list[Point]:
    return [{"size_bytes": size} for size in asked["sizes"]]


def roles(cell: Cell, places: Places) -> list[Role]:
    return stream_roles(cell, places, cell.count(COUNTS))


def judge(cell: Cell, told: Mapping[str, Told]) -> list[str]:
    return wrong_with_streams(told, cell.count(COUNTS))


def figures(cell: Cell, told: Mapping[str, Told]) -> Figures:
    return flow_figures(cell.size, consumers_of(told))


BENCHMARK = Benchmark(
    name="de-spsc",
    about="one publisher, a direct exchange, one consumer: rate and bandwidth by size",
    paper="AMQP over InfiniBand (2008), 3.1 and figure 3",
    points=points,
    roles=roles,
    judge=judge,
    figures=figures,
    columns=(
        Column("messages_per_s", "messages/s", with_interval=True),
        Column("megabytes_per_s", "MB/s", with_interval=True),
        Column("latency_mean_us", "mean us"),
        Column("latency_p99_us", "p99 us"),
    ),
    plots=(
        Plot("Message rate", "messages_per_s", "messages/s"),
        Plot("Bandwidth", "megabytes_per_s", "MB/s", beside=(PLATEAU,)),
        Plot("Speed: mean time to the consumer", "latency_mean_us", "µs"),
    ),
    published=(
        PLATEAU,
        Published("bandwidth of its network alone, both ways through one host, IPoIB", "550 MB/s"),
        Published("the same, SDP", "650 MB/s"),
    ),
    options=(SIZES, COUNT),
    quick={"sizes": (8, 256, 4096, 65536, 1 << 20)},
)
