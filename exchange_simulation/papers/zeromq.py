"""ZeroMQ 0.2 in Intel's Low Latency Lab."""

from __future__ import annotations

from exchange_simulation.messaging.benchmarks.throughput import AMQP_ENGINE
from exchange_simulation.papers.claims import LEAST_STRAIGHT, MOST_STRAIGHT, Claim
from exchange_simulation.papers.paper import Absent, BenchPart, Paper, PaperItem
from exchange_simulation.papers.statistics import (
    Read,
    constant,
    figure_at,
    larger_of,
    largest,
    ratio,
    straightness,
    with_rise_of,
)

MEDIUM = 8 << 10
LARGE = 64 << 10
SMALL = 32
GIGE = "gige"

PARTS = (
    BenchPart(
        name="latency",
        benchmark="latency",
        items=(
            PaperItem("latency", "one way by size, both axes"),
            PaperItem("latency, TCP", "the same over plain sockets"),
        ),
        full="--transport zeromq,tcp --sizes 1B..64KiB",
        quick="--transport zeromq,tcp --sizes 64,4KiB,8KiB,32KiB,64KiB",
    ),
    BenchPart(
        name="throughput",
        benchmark="throughput",
        items=(PaperItem("throughput", "messages/s and Mb/s by size"),),
        full="--transport zeromq --sizes 1B..64KiB",
        quick="--transport zeromq --sizes 1,2,8,64,1KiB,64KiB",
    ),
    BenchPart(
        name="density",
        benchmark="density",
        items=(PaperItem("density", "ns between two messages by size"),),
        full="--transport zeromq --sizes 1B..64KiB",
        quick="--transport zeromq --sizes 8,1KiB",
    ),
    BenchPart(
        name="streams",
        benchmark="streams",
        items=(
            PaperItem(
                "multiple cores",
                "messages/s and Mb/s of several streams",
                "a stream has two processes; lines for loopback and for 1 GigE, emulated, in place of 10 GbE",
                quick="loopback alone",
            ),
        ),
        full="--transport zeromq --network local,gige --streams 1,2,4,8 --sizes 1B..64KiB",
        quick="--transport zeromq --streams 1,2,4 --sizes 32,64KiB",
    ),
    BenchPart(
        name="batch-size",
        benchmark="batch-size",
        items=(
            PaperItem(
                "buffer size",
                "messages/s of 6 bytes by batch",
                "the application packs; today's libzmq has no such option",
            ),
        ),
        full="--transport zeromq --sizes 8B..8KiB",
        quick="--transport zeromq --sizes 8,128,2KiB,8KiB",
    ),
    BenchPart(
        name="amqp-engine",
        benchmark="throughput",
        items=(
            PaperItem(
                "AMQP engine",
                "messages/s of 6 bytes",
                "RabbitMQ stands for its engine, which the paper measured on commodity hardware and not in the lab",
            ),
        ),
        published=(AMQP_ENGINE,),
        full="--transport zeromq,amqp --sizes 6",
        quick="--transport zeromq,amqp --sizes 6",
    ),
)


def _one_way(transport: str, size: int) -> Read:
    return figure_at("one_way_mean_us", transport=transport, size_bytes=size)


CLAIMS = (
    Claim(
        "latency",
        "Small messages take about 25 us one way.",
        ratio(
            "one way of 64 B over 25 us",
            "latency",
            figure_at("one_way_mean_us", transport="zeromq", size_bytes=64),
            constant(25.0),
        ),
        at_most=1.2,
        of_hardware=True,
    ),
    Claim(
        "latency",
        "Messages of up to 4 kB take less than 50 us one way.",
        ratio(
            "one way of 4 KiB over 50 us",
            "latency",
            figure_at("one_way_mean_us", transport="zeromq", size_bytes=4096),
            constant(50.0),
        ),
        at_most=1.0,
        of_hardware=True,
    ),
    Claim(
        "latency",
        "Messages of 64 kB take at most 0.3 ms one way.",
        ratio(
            "one way of 64 KiB over 300 us",
            "latency",
            figure_at("one_way_mean_us", transport="zeromq", size_bytes=LARGE),
            constant(300.0),
        ),
        at_most=1.0,
        of_hardware=True,
    ),
    Claim(
        "latency",
        "ZeroMQ's latency is a straight line in the size of the message.",
        straightness(
            "one way of 32 KiB over the line from that of 8 KiB to that of 64 KiB",
            "latency",
            "one_way_mean_us",
            "size_bytes",
            (MEDIUM, 32 << 10, LARGE),
            transport="zeromq",
        ),
        at_least=LEAST_STRAIGHT,
        at_most=MOST_STRAIGHT,
    ),
    Claim(
        "latency",
        "ZeroMQ's latency is proportional to the number of bytes.",
        ratio("one way of 64 KiB over 8 KiB", "latency", _one_way("zeromq", LARGE), _one_way("zeromq", MEDIUM)),
        at_least=2.0,
    ),
    Claim(
        "latency, TCP",
        "The latency of plain TCP is a straight line, too.",
        straightness(
            "one way of 32 KiB over the line from that of 8 KiB to that of 64 KiB, tcp",
            "latency",
            "one_way_mean_us",
            "size_bytes",
            (MEDIUM, 32 << 10, LARGE),
            transport="tcp",
        ),
        at_least=LEAST_STRAIGHT,
        at_most=MOST_STRAIGHT,
    ),
    Claim(
        "latency, TCP",
        "The latency of plain TCP is proportional to the number of bytes, too.",
        ratio("one way of 64 KiB over 8 KiB, tcp", "latency", _one_way("tcp", LARGE), _one_way("tcp", MEDIUM)),
        at_least=2.0,
    ),
    Claim(
        "latency, TCP",
        "The overhead of ZeroMQ over TCP grows with the size.",
        ratio(
            "one way of 64 KiB over zeromq, over tcp's with the overhead that zeromq has at 8 KiB",
            "latency",
            _one_way("zeromq", LARGE),
            with_rise_of(_one_way("tcp", LARGE), _one_way("tcp", MEDIUM), _one_way("zeromq", MEDIUM)),
        ),
        at_least=1.0,
    ),
    Claim(
        "throughput",
        "One stream carries about 2.6 million small messages a second.",
        ratio(
            "messages/s of 64 B over 2.6 million",
            "throughput",
            figure_at("messages_per_s", size_bytes=64),
            constant(2.6e6),
        ),
        at_least=0.9,
        of_hardware=True,
    ),
    Claim(
        "throughput",
        "Messages of 1 and 2 bytes are slower than those of 8 bytes, which the paper does not take as significant.",
        ratio(
            "messages/s of the faster of 1 B and 2 B over 8 B",
            "throughput",
            larger_of(figure_at("messages_per_s", size_bytes=1), figure_at("messages_per_s", size_bytes=2)),
            figure_at("messages_per_s", size_bytes=8),
        ),
        at_most=1.0,
    ),
    Claim(
        "throughput",
        "One stream uses no more than 3 Gb/s, up to 64 kB.",
        ratio("the most Mb/s at any size over 3,000", "throughput", largest("megabits_per_s"), constant(3000.0)),
        at_most=1.0,
        of_hardware=True,
    ),
    Claim(
        "density",
        "Small messages arrive about every 300 ns.",
        ratio(
            "ns between messages of 8 B over 300",
            "density",
            figure_at("between_arrivals_ns", size_bytes=8),
            constant(300.0),
        ),
        at_most=1.2,
        of_hardware=True,
    ),
    Claim(
        "multiple cores",
        "Two streams of small messages carry less than twice what one does.",
        ratio(
            "messages/s in all of 2 streams over 1, 32 B",
            "streams",
            figure_at("messages_per_s", streams=2, size_bytes=SMALL),
            figure_at("messages_per_s", streams=1, size_bytes=SMALL),
        ),
        at_most=1.9,
    ),
    Claim(
        "multiple cores",
        "Two streams of large messages carry less than twice what one does, too.",
        ratio(
            "messages/s in all of 2 streams over 1, 64 KiB",
            "streams",
            figure_at("messages_per_s", streams=2, size_bytes=LARGE),
            figure_at("messages_per_s", streams=1, size_bytes=LARGE),
        ),
        at_most=1.9,
    ),
    Claim(
        "multiple cores",
        "The more streams there are, the longer is the time between the messages of one.",
        ratio(
            "ns between messages of a stream, 2 streams over 1, 32 B",
            "streams",
            figure_at("stream_between_arrivals_ns", streams=2, size_bytes=SMALL),
            figure_at("stream_between_arrivals_ns", streams=1, size_bytes=SMALL),
        ),
        at_least=1.0,
    ),
    Claim(
        "multiple cores",
        "Messages of 512 bytes fill the network.",
        ratio(
            "the most Mb/s of 512 B in any number of streams over the 1,000 of 1 GigE",
            "streams",
            largest("megabits_per_s", size_bytes=512, network=GIGE),
            constant(1000.0),
        ),
        at_least=0.9,
        network=GIGE,
    ),
    Claim(
        "buffer size",
        "Very small batches cost much of the throughput.",
        ratio(
            "messages/s in batches of 2 KiB over 8 B",
            "batch-size",
            figure_at("messages_per_s", batch_bytes=2048),
            figure_at("messages_per_s", batch_bytes=8),
        ),
        at_least=2.0,
    ),
    Claim(
        "buffer size",
        "Batches of more than 2 kB bring no more.",
        ratio(
            "messages/s in batches of 8 KiB over 2 KiB",
            "batch-size",
            figure_at("messages_per_s", batch_bytes=8192),
            figure_at("messages_per_s", batch_bytes=2048),
        ),
        at_most=1.1,
    ),
    Claim(
        "AMQP engine",
        "The AMQP engine carries about 700,000 messages of 6 bytes a second.",
        ratio(
            "messages/s over amqp over 700,000",
            "amqp-engine",
            figure_at("messages_per_s", transport="amqp"),
            constant(700_000.0),
        ),
        at_least=0.9,
        of_hardware=True,
    ),
)
PAPER = Paper(
    name="zeromq",
    title="ØMQ (version 0.2) tests, made in Intel's Low Latency Lab",
    citation="iMatix: ØMQ (version 0.2) tests. http://www.zeromq.org/area:results",
    contents=(
        *PARTS,
        Absent(
            PaperItem("version 0.1", "version 0.1 beside 0.2"),
            "neither builds against today's libraries; libzmq 4 stands for both",
        ),
        Absent(
            PaperItem("buffer size, latency", "a larger buffer has a higher latency in the worst case, in principle"),
            "the paper measures none of it; messages of 6 bytes have no room for the time of a worst case",
        ),
        Absent(
            PaperItem("10 GbE", "latency and throughput over Intel's 10 GbE with I/OAT"),
            "it takes such a network and such a chipset: loopback and emulated 1 GigE stand in",
        ),
    ),
    claims=CLAIMS,
    open_questions=(
        "The text has 300 ns between messages where its own 2.6 million messages/s give 385 ns.",
        "Its buffer size is a setting of the library; here the application packs messages into a frame.",
    ),
)
