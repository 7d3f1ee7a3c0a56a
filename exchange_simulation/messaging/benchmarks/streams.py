"""streams: several independent streams at the same time.

publisher 1  ══▶  consumer 1
publisher 2  ══▶  consumer 2         each PUSH to PULL, on a connection of its own, in processes of its own
...               ...
publisher s  ══▶  consumer s
"""

from __future__ import annotations

from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell, Counts, Figures, Results
from exchange_simulation.messaging.options import COUNT, numbers_option, sizes_option
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.point import by_size_and
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.streams import Streams, with_megabits

COUNTS = Counts(broker=50_000, brokerless=1_000_000, total_bytes=1 << 27)
RATE_OF_A_STREAM = "stream_messages_per_s"
STREAMS = Streams(messages=lambda cell: cell.count(COUNTS), streams_key="streams", median_rate_figure=RATE_OF_A_STREAM)
NUMBER_OF_STREAMS = numbers_option(
    "--streams",
    noun="streams",
    most=256,
    default="1,2,4,8",
    metavar="S[,...]",
    help="How many streams at the same time.",
)
ALL_STREAMS = Published(
    "messages/s, small messages, all streams on 8 cores, ours of 32 B",
    "about 4 million",
    level=4e6,
    level_label="the paper, small ones",
    figure="messages_per_s",
    is_peak=True,
    where={"size_bytes": 32},
)
FULL_NETWORK = Published(
    "Mb/s, the most of any streams: 10 GbE in a 4x slot, of which 7,000 were expected",
    "5,600",
    level=5_600.0,
    level_label="the paper, from 512 B",
    figure="megabits_per_s",
    is_peak=True,
)


def _large(words: str, value: str, *, streams: int) -> Published:
    return Published(
        f"Mb/s, 64 KiB, {words}", value, figure="megabits_per_s", where={"size_bytes": 65536, "streams": streams}
    )


def _small(words: str, value: str, *, streams: int) -> Published:
    return Published(
        f"ns between the messages of a stream, 32 B, {words}",
        value,
        figure="stream_between_arrivals_ns",
        where={"size_bytes": 32, "streams": streams},
    )


def figures(cell: Cell, results: Results) -> Figures:
    figures_of_streams = with_megabits(STREAMS.figures(cell, results))
    if RATE_OF_A_STREAM not in figures_of_streams:
        return figures_of_streams
    return {**figures_of_streams, "stream_between_arrivals_ns": 1e9 / figures_of_streams[RATE_OF_A_STREAM]}


BENCHMARK = BenchmarkDefinition(
    about="several independent streams at once: rate in all, and of a stream",
    paper="ZeroMQ 0.2 tests, scaling on multiple cores",
    points=by_size_and("streams"),
    roles=STREAMS.roles,
    judge=STREAMS.judge,
    figures=figures,
    flood_s=lambda cell: COUNTS.flood_s(cell, cell.point["streams"]),
    takes_rate=True,
    columns=(
        Column("messages_per_s", "messages/s, all", with_interval=True),
        Column("megabits_per_s", "Mb/s, all"),
        Column(RATE_OF_A_STREAM, "of a stream", with_interval=True),
        Column("stream_between_arrivals_ns", "ns between its messages"),
    ),
    plots=(
        Plot("All streams", "messages_per_s", "messages/s", x="streams", published=(ALL_STREAMS,)),
        Plot("All streams, in megabits", "megabits_per_s", "Mb/s", x="streams", published=(FULL_NETWORK,)),
        Plot("Density of a stream", "stream_between_arrivals_ns", "ns", x="streams"),
    ),
    published=(
        ALL_STREAMS,
        FULL_NETWORK,
        _large("one stream", "3,000", streams=1),
        _large("two streams", "4,500", streams=2),
        _small("one stream", "400", streams=1),
        _small("two streams", "600", streams=2),
    ),
    options=(sizes_option("32,512,64KiB"), COUNT, NUMBER_OF_STREAMS),
    transports="zeromq",
    quick_values={"sizes": (32, 65536), "streams": (1, 2, 4)},
)
