"""DE-SPSC: direct exchange, single publisher, single consumer.

    publisher  ══ N messages of a size ══▶  [direct exchange ▸ queue]  ══▶  consumer
    publisher  ◀── [queue ◂ direct exchange]  ◀── one empty reply, once it has N ──  consumer

Over a brokerless transport: PUSH to PULL, and another pair for the reply; over tcp and memory one connection for both.
"""

from __future__ import annotations

from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell, Counts, Figures, Results
from exchange_simulation.messaging.options import COUNT, SIZES
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.streams import Streams, by_publishers_clock

STREAM = Streams(messages=lambda cell: cell.count(Counts()))


def figures(cell: Cell, results: Results) -> Figures:
    """The paper's rates, by the publisher's clock, and beside them the rate by the receiver's clock.

    A clock that ran too short gives no rate.
    """
    return by_publishers_clock(cell.size, results, STREAM.figures(cell, results))


PAPERS_BANDWIDTH = Published(
    "bandwidth over IPoIB (section 1), ours of the best size",
    "350 MB/s",
    level=350.0,
    figure="megabytes_per_s",
    is_peak=True,
)

BENCHMARK = BenchmarkDefinition(
    about="one publisher, a direct exchange, one consumer: rate and bandwidth by size",
    paper="AMQP over InfiniBand, 3.1 and figure 3",
    roles=STREAM.roles,
    judge=STREAM.judge,
    figures=figures,
    takes_rate=True,
    columns=(
        Column("messages_per_s", "messages/s", with_interval=True),
        Column("megabytes_per_s", "MB/s", with_interval=True),
        Column("receiver_messages_per_s", "receiver's clock"),
        Column("latency_mean_us", "queued us"),
        Column("latency_p99_us", "queued p99"),
    ),
    plots=(
        Plot("Message rate (figures 3a to 3c)", "messages_per_s", "messages/s"),
        Plot("Bandwidth", "megabytes_per_s", "MB/s", published=(PAPERS_BANDWIDTH,)),
        Plot("Speed, mostly a wait in queues (figures 3a to 3c)", "latency_mean_us", "µs"),
    ),
    published=(PAPERS_BANDWIDTH,),
    options=(SIZES, COUNT),
    quick_values={"sizes": (8, 256, 4096, 65536, 1 << 20)},
)
