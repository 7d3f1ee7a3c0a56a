"""IBM's comparison of MQSeries and MSMQ: request and reply over shared queues."""

from __future__ import annotations

from collections.abc import Iterator

from exchange_simulation.messaging.request_reply_paper import PRELOADED_BESIDE_OURS
from exchange_simulation.papers.claims import Claim, Statistic
from exchange_simulation.papers.paper import Absent, BenchPart, Paper, PaperItem
from exchange_simulation.papers.statistics import Read, constant, figure_at, largest, quotient, ratio, smallest_ratio

REPLIES = "replies_per_s"
INDEXED = "indexed"
SCAN = "scan"
SIZES = "100,512,1024,5120,10240,20480,30720,40960,65536"
OVER_AMQP = "--transport amqp --match indexed,scan"
SHORT = "a sample of seconds, where the paper took five minutes; raise --warm-up and --sample as you like"
QUICK_TIMES = "--warm-up 0.1 --sample 0.3"

PARTS = (
    BenchPart(
        name="by-threads",
        benchmark="request-reply",
        items=(PaperItem("figures 2, 3", "replies/s by threads, 1 to 8 clients, 1 KiB", SHORT),),
        full=f"{OVER_AMQP} --clients 1..8 --threads 1..15 --sizes 1KiB",
        quick=f"{OVER_AMQP} --clients 1,4,6,8 --threads 1,8,15 --sizes 1KiB {QUICK_TIMES}",
    ),
    BenchPart(
        name="by-threads-64k",
        benchmark="request-reply",
        items=(PaperItem("figures 4, 5", "the same, 64 KiB", SHORT),),
        full=f"{OVER_AMQP} --clients 1..8 --threads 1..15 --sizes 64KiB",
        quick=f"{OVER_AMQP} --clients 1,4 --threads 1,8 --sizes 64KiB {QUICK_TIMES}",
    ),
    BenchPart(
        name="preload",
        benchmark="request-reply",
        items=(
            PaperItem(
                "figure 6, tables 2, 3",
                "replies/s by what lies preloaded",
                f"indexed, what lies preloaded is in another queue, of a client that is away; {SHORT}",
            ),
        ),
        published=PRELOADED_BESIDE_OURS,
        full=f"{OVER_AMQP} --clients 6 --threads 1 --preload 0,50,100,150,200,300,500,1000",
        quick=f"{OVER_AMQP} --clients 6 --threads 1 --preload 0,50,1000 {QUICK_TIMES}",
    ),
    BenchPart(
        name="peaks",
        benchmark="request-reply",
        items=(
            PaperItem(
                "figures 7, 8, tables 1, 4, 5",
                "peaks of one client and of all, by size",
                SHORT,
            ),
        ),
        full=f"{OVER_AMQP} --clients 1..8 --threads 1..15 --sizes {SIZES} --warm-up 0.2 --sample 0.5",
        drawn=("figure 7", "figure 8"),
        quick=f"{OVER_AMQP} --clients 1,4 --threads 1,8 --sizes 100,1024,65536 {QUICK_TIMES}",
    ),
    BenchPart(
        name="counter-test",
        benchmark="request-reply",
        items=(
            PaperItem(
                "counter-test",
                "requests that do not wait for their replies",
                f"indexed alone: a search waits for one reply at a time; {SHORT}",
            ),
        ),
        published=(),
        full="--transport amqp --clients 1..8 --threads 1 --ahead 1,1000",
        quick=f"--transport amqp --clients 4 --threads 1 --ahead 1,1000 {QUICK_TIMES}",
    ),
)


def _replies(match: str, clients: int, threads: int) -> Read:
    return figure_at(REPLIES, match=match, clients=clients, threads=threads, preloaded=0)


def _by_threads(words: str, above: Read, below: Read) -> Statistic:
    return ratio(words, "by-threads", above, below)


def _preloaded(match: str, messages: int) -> Read:
    return figure_at(REPLIES, match=match, preloaded=messages)


def _smallest_of_all_combinations() -> tuple[Read, Read]:
    """Rates of the index and of the search at the combination of clients and threads where they are closest.

    The second is 1 in each repeat: the first is the smallest ratio.
    """
    return smallest_ratio(REPLIES, "match", INDEXED, SCAN), constant(1.0)


def _advantage(figure: str, **point: int) -> Read:
    """The largest value of a figure by the index, over that by the search."""
    return quotient(largest(figure, match=INDEXED, **point), largest(figure, match=SCAN, **point))


def _claims_of_64_kib() -> Iterator[Claim]:
    """Figures 4 and 5: the index and the search with large messages."""
    yield Claim(
        "figures 4, 5",
        "Messages of 64 KiB, too, are served more by the index for every combination of clients and threads.",
        ratio(
            "replies/s of 64 KiB, indexed over scan, of the combination with the smallest ratio",
            "by-threads-64k",
            *_smallest_of_all_combinations(),
        ),
        at_least=1.0,
    )
    yield Claim(
        "figure 4, table 4",
        "A single client is served almost 4 times as much by the index, 64 KiB.",
        ratio(
            "peak replies/s of one client, 64 KiB, indexed over scan",
            "by-threads-64k",
            largest(REPLIES, match=INDEXED, clients=1),
            largest(REPLIES, match=SCAN, clients=1),
        ),
        at_least=3.0,
    )
    yield Claim(
        "figure 4, table 5",
        "The peak of all clients is 27 % higher by the index, 64 KiB.",
        ratio(
            "peak replies/s, 64 KiB, indexed over scan",
            "by-threads-64k",
            largest(REPLIES, match=INDEXED),
            largest(REPLIES, match=SCAN),
        ),
        at_least=1.1,
        at_most=1.5,
    )


def _claims_on_the_advantage() -> Iterator[Claim]:
    """What makes the advantage of the index over the search larger, and smaller."""
    yield Claim(
        "figure 6, table 3",
        "The index serves more than the search whatever number of replies lies preloaded.",
        ratio(
            "replies/s, indexed over scan, of the preloaded number with the smallest ratio",
            "preload",
            *_smallest_of_all_combinations(),
        ),
        at_least=1.0,
    )
    yield Claim(
        "table 3",
        "The advantage of the index grows with what lies preloaded: from 4 times to 51 times.",
        ratio(
            "replies/s, indexed over scan, with 1,000 preloaded over the same with none",
            "preload",
            quotient(_preloaded(INDEXED, 1000), _preloaded(SCAN, 1000)),
            quotient(_preloaded(INDEXED, 0), _preloaded(SCAN, 0)),
        ),
        at_least=2.0,
    )
    yield Claim(
        "table 4",
        "The advantage of the index to a single client shrinks as messages grow: from 17 times to 4 times.",
        ratio(
            "peak kB/s of one client, indexed over scan, of 64 KiB over the same of 100 B",
            "peaks",
            _advantage("kilobytes_per_s", clients=1, size_bytes=65536),
            _advantage("kilobytes_per_s", clients=1, size_bytes=100),
        ),
        at_most=1.0,
    )
    yield Claim(
        "table 5",
        "The advantage of the index at the peak of all clients shrinks as messages grow: from 4.3 to 1.3 times.",
        ratio(
            "peak kB/s, indexed over scan, of 64 KiB over the same of 100 B",
            "peaks",
            _advantage("kilobytes_per_s", size_bytes=65536),
            _advantage("kilobytes_per_s", size_bytes=100),
        ),
        at_most=1.0,
    )


def _claims_by_size() -> Iterator[Claim]:
    """What the size of a message does, to the index and to the search."""
    for match, product in ((INDEXED, "MQSeries, by an index"), (SCAN, "MSMQ, by a search")):
        yield Claim(
            "figure 8, table 5",
            f"The peak in kB/s rises with the size of the message: {product}.",
            ratio(
                f"peak kB/s of 64 KiB over 100 B, {match}",
                "peaks",
                largest("kilobytes_per_s", size_bytes=65536, match=match),
                largest("kilobytes_per_s", size_bytes=100, match=match),
            ),
            at_least=1.0,
        )
        yield Claim(
            "figures 2 to 5",
            f"The rate in messages falls with the size: {product}.",
            ratio(
                f"peak replies/s of 64 KiB over 100 B, {match}",
                "peaks",
                largest(REPLIES, size_bytes=65536, match=match),
                largest(REPLIES, size_bytes=100, match=match),
            ),
            at_most=1.0,
        )


CLAIMS = (
    Claim(
        "figure 2",
        "One client with one thread drives a server that indexes at its peak.",
        _by_threads(
            "replies/s of 1 client, 1 thread over the peak, indexed",
            _replies(INDEXED, 1, 1),
            largest(REPLIES, match=INDEXED),
        ),
        at_least=0.9,
    ),
    Claim(
        "figure 2",
        "Further clients bring a server that indexes no more.",
        _by_threads(
            "replies/s of 4 clients over 1, 1 thread, indexed", _replies(INDEXED, 4, 1), _replies(INDEXED, 1, 1)
        ),
        at_most=1.1,
    ),
    Claim(
        "figure 2",
        "Further threads of a client bring a server that indexes no more.",
        _by_threads(
            "replies/s of 8 threads over 1, 1 client, indexed", _replies(INDEXED, 1, 8), _replies(INDEXED, 1, 1)
        ),
        at_most=1.1,
    ),
    Claim(
        "figure 2",
        "A server that is searched serves linearly more with each client, up to about four.",
        _by_threads("replies/s of 4 clients over 1, 1 thread, scan", _replies(SCAN, 4, 1), _replies(SCAN, 1, 1)),
        at_least=3.0,
    ),
    Claim(
        "figure 3",
        "The peak of a server that is searched declines with eight clients.",
        _by_threads(
            "peak replies/s of 8 clients over 6, scan",
            largest(REPLIES, match=SCAN, clients=8),
            largest(REPLIES, match=SCAN, clients=6),
        ),
        at_most=1.0,
    ),
    Claim(
        "figure 3",
        "Searched, six clients with 15 threads each are served at about a third of the rate with one thread each.",
        _by_threads("replies/s of 15 threads over 1, 6 clients, scan", _replies(SCAN, 6, 15), _replies(SCAN, 6, 1)),
        at_least=0.25,
        at_most=0.5,
    ),
    Claim(
        "figure 3",
        "Indexed, six clients with 15 threads each are served less than with one thread each, too.",
        _by_threads(
            "replies/s of 15 threads over 1, 6 clients, indexed", _replies(INDEXED, 6, 15), _replies(INDEXED, 6, 1)
        ),
        at_most=1.0,
    ),
    Claim(
        "figures 2, 3",
        "The index serves more than the search for every combination of clients and threads.",
        _by_threads(
            "replies/s, indexed over scan, of the combination with the smallest ratio",
            *_smallest_of_all_combinations(),
        ),
        at_least=1.0,
    ),
    Claim(
        "table 4",
        "A single client is served over 16 times as much by the index, 1 KiB.",
        _by_threads(
            "peak replies/s of one client, indexed over scan",
            largest(REPLIES, match=INDEXED, clients=1),
            largest(REPLIES, match=SCAN, clients=1),
        ),
        at_least=16.0,
    ),
    Claim(
        "figures 2, 3, table 5",
        "At its peak the search is served at less than a quarter of the index's rate.",
        _by_threads("peak replies/s, scan over indexed", largest(REPLIES, match=SCAN), largest(REPLIES, match=INDEXED)),
        at_most=0.25,
    ),
    Claim(
        "figure 6, tables 2, 3",
        "A thousand preloaded replies bring the search down to a sixteenth.",
        ratio("replies/s with 1,000 preloaded over none, scan", "preload", _preloaded(SCAN, 1000), _preloaded(SCAN, 0)),
        at_most=0.1,
    ),
    Claim(
        "figure 6, tables 2, 3",
        "Even a very small number, 50, costs the search much: 42 %.",
        ratio("replies/s with 50 preloaded over none, scan", "preload", _preloaded(SCAN, 50), _preloaded(SCAN, 0)),
        at_most=0.75,
    ),
    Claim(
        "figure 6, tables 2, 3",
        "The index keeps three quarters of its rate with a thousand.",
        ratio(
            "replies/s with 1,000 preloaded over none, indexed",
            "preload",
            _preloaded(INDEXED, 1000),
            _preloaded(INDEXED, 0),
        ),
        at_least=0.7,
    ),
    *_claims_of_64_kib(),
    *_claims_on_the_advantage(),
    *_claims_by_size(),
    Claim(
        "previously published results",
        "Clients that do not wait for their replies make the figures larger.",
        ratio(
            "replies/s with 1,000 requests ahead over 1",
            "counter-test",
            figure_at(REPLIES, clients=4, ahead=1000),
            figure_at(REPLIES, clients=4, ahead=1),
        ),
        at_least=1.0,
    ),
)
PAPER = Paper(
    name="request-reply",
    title="IBM: MQSeries 5.1 and Microsoft Message Queue 2.0, request and reply on shared queues",
    citation="IBM: a performance comparison of IBM MQSeries 5.1 and Microsoft Message Queue 2.0 on Windows 2000. 2000.",
    contents=(
        *PARTS,
        Absent(PaperItem("figure 1", "a drawing of the hosts"), "nothing is measured in it"),
        Absent(
            PaperItem("MQSeries, MSMQ", "the two products"), "RabbitMQ stands for both: by an index, and by a search"
        ),
    ),
    claims=CLAIMS,
    open_questions=(
        "MQSeries indexes a shared queue by correlation id; AMQP 0-9-1 cannot, so each thread has its own queue.",
        "Two captions say that messages were preloaded into the request queue; the text says the response queue.",
    ),
)
