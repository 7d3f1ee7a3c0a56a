"""DE-MPMC: direct exchange, multiple publishers, multiple consumers.

    publisher 1  ══ N messages ══▶  [                 ▸ queue 1]  ══▶  consumer 1
    publisher 2  ══ N messages ══▶  [ direct exchange ▸ queue 2]  ══▶  consumer 2
    ...                             [                 ▸ queue k]       ...
    each publisher  ◀── one empty reply, once its consumer has N

With --brokers n there are n brokers that share nothing, a distributed broker at its simplest: pair i uses broker i
modulo n.
Brokerless: k connections, PUSH to PULL, that have nothing in common but the machine.
"""

from __future__ import annotations

from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Counts
from exchange_simulation.messaging.options import COUNT, numbers_option, sizes_option
from exchange_simulation.messaging.point import BROKERS, by_size_and, with_brokers
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.streams import Streams, by_publishers_clock

COUNTS = Counts(broker=50_000, brokerless=500_000, total_bytes=1 << 27)
STREAMS = Streams(
    messages=lambda cell: cell.count(COUNTS), streams_key="pairs", median_rate_figure="pair_messages_per_s"
)
CPU = {"broker_cores": "broker", "consumer_cores": "consumers", "publisher_cores": "publishers"}
PAIRS = numbers_option(
    "--pairs",
    noun="pairs",
    most=256,
    default="1,2,4,8",
    metavar="K[,...]",
    help="How many pairs at the same time.",
)
BROKERS_OPTION = numbers_option(
    f"--{BROKERS}",
    noun="brokers",
    most=8,
    default="1",
    metavar="N[,...]",
    help="How many private brokers share the pairs: each pair has one of them, in turn.",
)

BENCHMARK = BenchmarkDefinition(
    about="k pairs at once on one direct exchange: rate in all and of a pair, CPU, by k",
    paper="AMQP over InfiniBand, 3.2 and figures 4a, 4b",
    points=with_brokers(by_size_and("pairs")),
    roles=STREAMS.roles,
    judge=STREAMS.judge,
    figures=lambda cell, results: by_publishers_clock(cell.size, results, STREAMS.figures(cell, results)),
    flood_s=lambda cell: COUNTS.flood_s(cell, cell.point["pairs"]),
    takes_rate=True,
    columns=(
        Column("messages_per_s", "messages/s, all", with_interval=True),
        Column("megabytes_per_s", "MB/s, all"),
        Column("pair_messages_per_s", "of a pair", with_interval=True),
        Column("receiver_messages_per_s", "all, receivers' clock"),
        Column("latency_mean_us", "queued us"),
    ),
    plots=(
        Plot("Bandwidth of all pairs (figure 4a)", "megabytes_per_s", "MB/s", x="pairs"),
        Plot("Message rate of all pairs", "messages_per_s", "messages/s", x="pairs"),
        Plot("CPU (figure 4b)", "cores", "cores", x="pairs", linear=True, series=CPU),
    ),
    options=(sizes_option("64,16KiB"), COUNT, PAIRS, BROKERS_OPTION),
    quick_values={"sizes": (64,), "pairs": (1, 2, 8)},
)
