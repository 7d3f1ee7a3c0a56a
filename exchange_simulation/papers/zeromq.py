"""ZeroMQ 0.2 in Intel's Low Latency Lab."""

from __future__ import annotations

from exchange_simulation.messaging.benchmarks.throughput import AMQP_ENGINE
from exchange_simulation.messaging.point import LOCAL
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

SMALLEST_COMPARED = 64
"""The smallest size at which latency is measured in the short form, too."""
BELOW_4_KIB = 2 << 10
MEDIUM = 8 << 10
LARGE = 64 << 10
SMALL = 32
GIGE = "gige"

PARTS = (
    BenchPart(
        name="latency",
        benchmark="latency",
        items=(
            PaperItem(
                "latency",
                "one way by size, on a logarithmic and on a linear axis",
                "here both axes of the first are logarithmic, in the paper the x axis alone; lines for loopback and "
                "for 1 GigE, emulated, with 50 us of delay; the paper's hosts had 10 GbE and no switch between them",
                is_on_loopback_if_quick=True,
            ),
            PaperItem("latency, TCP", "the same over plain sockets"),
        ),
        full="--transport zeromq,tcp --network local,gige --sizes 1B..64KiB",
        quick="--transport zeromq,tcp --sizes 64,2KiB,8KiB,64KiB",
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
        items=(
            PaperItem(
                "density",
                "ns between two messages by size",
                "measured once more; the paper converts the runs of its throughput",
            ),
        ),
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
                "all processes are on this host, with two threads each as in the paper, whose streams ran between two "
                "hosts of 8 and 16 cores; lines for loopback and for 1 GigE, emulated, in place of 10 GbE",
                is_on_loopback_if_quick=True,
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
                "a frame is filled, sent and checked as one, and counts as the messages of 6 bytes that fit in it, so "
                "the cost of a message is shared as well as that of a call; libzmq batches frames again. Today's "
                "libzmq has the paper's option in draft builds only",
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
                "RabbitMQ stands for its engine, as a broker between both ends; the paper does not say whether its "
                "engine was one, and measured it on commodity hardware and not in the lab",
            ),
        ),
        published=(AMQP_ENGINE,),
        full="--transport zeromq,amqp --sizes 6",
        quick="--transport zeromq,amqp --sizes 6",
    ),
)


def _one_way(transport: str, size: int, network: str = LOCAL) -> Read:
    """The latency of messages of one size; loopback stands for the paper's 10 GbE."""
    return figure_at("one_way_mean_us", transport=transport, size_bytes=size, network=network)


def _straight(place: str, sentence: str, transport: str) -> Claim:
    """The latency over a transport is a straight line in the size of the message.

    It is tested on the emulated network: on loopback the rise is so small that any curve is nearly straight.
    """
    return Claim(
        place,
        sentence,
        straightness(
            f"one way of 32 KiB over the line from that of 1 B to that of 64 KiB, {transport}, on gige",
            "latency",
            "one_way_mean_us",
            "size_bytes",
            (1, 32 << 10, LARGE),
            transport=transport,
            network=GIGE,
        ),
        at_least=LEAST_STRAIGHT,
        at_most=MOST_STRAIGHT,
        network=GIGE,
    )


CLAIMS = (
    Claim(
        "summary 1",
        "Over 10 GbE with I/OAT small messages take 25 us or less one way.",
        ratio(
            "one way of 64 B over 25 us, on loopback",
            "latency",
            _one_way("zeromq", 64),
            constant(25.0),
        ),
        at_most=1.0,
        of_hardware=True,
    ),
    Claim(
        "latency",
        "Messages below 4 kB take less than 50 us one way.",
        ratio(
            "one way of 2 KiB over 50 us, on loopback",
            "latency",
            _one_way("zeromq", BELOW_4_KIB),
            constant(50.0),
        ),
        at_most=1.0,
        of_hardware=True,
    ),
    Claim(
        "latency",
        "Messages of 64 kB take 0.3 ms or less one way.",
        ratio(
            "one way of 64 KiB over 300 us, on loopback",
            "latency",
            _one_way("zeromq", LARGE),
            constant(300.0),
        ),
        at_most=1.0,
        of_hardware=True,
    ),
    _straight("latency", "ZeroMQ's latency is a straight line in the size of the message.", "zeromq"),
    Claim(
        "latency",
        "ZeroMQ's latency is proportional to the number of bytes.",
        ratio(
            "one way of 64 KiB over 8 KiB, on gige",
            "latency",
            _one_way("zeromq", LARGE, GIGE),
            _one_way("zeromq", MEDIUM, GIGE),
        ),
        at_least=2.0,
        network=GIGE,
    ),
    _straight("latency, TCP", "The latency of plain TCP is a straight line, too.", "tcp"),
    Claim(
        "latency, TCP",
        "The overhead of ZeroMQ over TCP grows with the size.",
        ratio(
            "one way of 64 KiB: zeromq's, divided by tcp's and the overhead that zeromq has at 64 B, on loopback",
            "latency",
            _one_way("zeromq", LARGE),
            with_rise_of(
                _one_way("tcp", LARGE), _one_way("tcp", SMALLEST_COMPARED), _one_way("zeromq", SMALLEST_COMPARED)
            ),
        ),
        at_least=1.0,
        of_hardware=True,
    ),
    Claim(
        "summary 2",
        "One stream carries 2.6 million small messages a second, or more.",
        ratio(
            "messages/s of 64 B over 2.6 million",
            "throughput",
            figure_at("messages_per_s", size_bytes=64),
            constant(2.6e6),
        ),
        at_least=1.0,
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
        of_hardware=True,
    ),
    Claim(
        "throughput",
        "One stream of one application thread and one worker thread uses no more than 3 Gb/s, up to 64 kB.",
        ratio("the most Mb/s at any size over 3,000", "throughput", largest("megabits_per_s"), constant(3000.0)),
        at_most=1.0,
        of_hardware=True,
    ),
    Claim(
        "density",
        "Small messages arrive every 300 ns, or less.",
        ratio(
            "ns between messages of 8 B over 300",
            "density",
            figure_at("between_arrivals_ns", size_bytes=8),
            constant(300.0),
        ),
        at_most=1.0,
        of_hardware=True,
    ),
    Claim(
        "summary 3",
        "Several streams together carry 4 million small messages a second or more, on 8 cores.",
        ratio(
            "the most messages/s of any number of streams, 32 B, over 4 million",
            "streams",
            largest("messages_per_s", size_bytes=SMALL),
            constant(4e6),
        ),
        at_least=1.0,
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
        of_hardware=True,
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
        of_hardware=True,
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
        of_hardware=True,
    ),
    Claim(
        "summary 4, multiple cores",
        "Messages of 512 bytes fill the network.",
        ratio(
            "the most Mb/s of 512 B over those of any size, in any number of streams, on gige",
            "streams",
            largest("megabits_per_s", size_bytes=512, network=GIGE),
            largest("megabits_per_s", network=GIGE),
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
        of_hardware=True,
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
        of_hardware=True,
    ),
    Claim(
        "summary 5, AMQP engine",
        "The AMQP engine carries 700,000 messages of 6 bytes a second, or more.",
        ratio(
            "messages/s over amqp over 700,000",
            "amqp-engine",
            figure_at("messages_per_s", transport="amqp"),
            constant(700_000.0),
        ),
        at_least=1.0,
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
            PaperItem("version 0.1", "0.2 is as fast as 0.1, and scales as it did"),
            "only libzmq 4 is here, in place of 0.2; nothing is compared with an earlier version",
        ),
        Absent(
            PaperItem("buffer size, latency", "a larger buffer has a higher latency in the worst case, in principle"),
            "the paper measures none of it, and adds that a large buffer need not make latency worse, since a batch "
            "ends as soon as the consumer asks for data; here only frames have a latency, not their messages",
        ),
        Absent(
            PaperItem("interrupts", "their throttling: off for latency, and 8,000 a second for throughput"),
            "a setting of network cards; all runs on loopback or an emulated network",
        ),
        Absent(
            PaperItem("10 GbE", "latency and throughput over Intel's 10 GbE with I/OAT"),
            "it takes such a network and such a chipset: loopback stands in, and for latency and several streams also "
            "emulated 1 GigE",
        ),
    ),
    claims=CLAIMS,
    open_questions=(
        "All publishers and consumers share this machine's processors; the paper has two hosts, of 8 and 16 cores. "
        "Where one stream fills them, two cannot carry twice as much.",
        "The paper copies, and names zero-copy as later work that would give ZeroMQ and TCP the same slope. Today's "
        "libzmq sends messages of 8 KiB and more so.",
        "The paper names no size for 25 us, 2.6 million/s, 4 million/s and 300 ns. Ours are 64 B, 64 B, 32 B and 8 B, "
        "and up to 8 streams.",
        "300 ns between small messages are 3.3 million/s; the summary's 2.6 million/s are 385 ns, and 32 B take 400 ns "
        "with one stream.",
        "Its average transport time is read as half of the round trip.",
        "Latency at small sizes is not zero in the paper, either. Proportional is read as: eight times the bytes take "
        "at least twice the time; its own 25 and 300 us, on a straight line, give 5 times.",
        "The paper's network carries 5.6 Gb/s, so 1 GigE is full with a sixth of its messages, and with smaller ones.",
        "The emulated network is a program that takes up to one processor of this machine; on two, very small messages "
        "over it are limited by processors.",
        "Messages/s of all streams are counted from the first message of any to the last of any, so streams that do "
        "not begin together carry less in all.",
        "The overhead of ZeroMQ is compared between 64 B and 64 KiB, on loopback.",
        "Lower than expected, of 1 and 2 bytes, is read as slower than 8 bytes.",
        "Its buffer size is a setting of the library, 8 kB in its tests of throughput, as libzmq's is by default; here "
        "frames have the size of the batch.",
        "Bounds are our readings: straight within a tenth, full from 90 %, much is half, less than twice is 1.9 or "
        "less, no more up to 1.1.",
    ),
)
