"""throughput: messages blasted one way, timed where they arrive.

    publisher  ══ as fast as it goes ══▶  consumer      PUSH to PULL; over AMQP through a direct exchange

The rate is measured at the consumer, from its first message to its last.
"""

from __future__ import annotations

from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell, Counts, Figures, Results
from exchange_simulation.messaging.options import COUNT, sizes_option
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.streams import Streams, with_megabits

COUNTS = Counts(brokerless=5_000_000, total_bytes=1 << 29)
STREAM = Streams(messages=lambda cell: cell.count(COUNTS))
SMALL = Published(
    "messages/s, one stream of small messages, ours of 64 B",
    "2.6 million",
    level=2.6e6,
    level_label="the paper, small ones",
    figure="messages_per_s",
    where={"size_bytes": 64},
)
BANDWIDTH = Published(
    "Mb/s, one stream of any size up to 64 KiB",
    "at most 3,000",
    level=3_000.0,
    level_label="the paper, at most",
    figure="megabits_per_s",
    is_peak=True,
)
AMQP_ENGINE = Published(
    "messages/s over amqp, its AMQP engine on commodity hardware, 6 bytes",
    "about 700,000",
    figure="messages_per_s",
    where={"size_bytes": 6},
    transport="amqp",
)


def figures(cell: Cell, results: Results) -> Figures:
    return with_megabits(STREAM.figures(cell, results))


BENCHMARK = BenchmarkDefinition(
    about="messages blasted one way, timed where they arrive: messages/s and Mb/s by size",
    paper="ZeroMQ 0.2 tests, throughput",
    roles=STREAM.roles,
    judge=STREAM.judge,
    figures=figures,
    flood_s=COUNTS.flood_s,
    takes_rate=True,
    columns=(
        Column("messages_per_s", "messages/s", with_interval=True),
        Column("megabits_per_s", "Mb/s", with_interval=True),
        Column("seconds", "seconds"),
    ),
    plots=(
        Plot("Throughput", "messages_per_s", "messages/s", published=(SMALL,)),
        Plot("Throughput in megabits", "megabits_per_s", "Mb/s", published=(BANDWIDTH,)),
    ),
    published=(
        SMALL,
        BANDWIDTH,
        AMQP_ENGINE,
    ),
    options=(sizes_option("1B..64KiB"), COUNT),
    quick_values={"sizes": (8, 64, 1024, 65536)},
)
