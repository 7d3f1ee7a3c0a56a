"""IBM's comparison of MQSeries and MSMQ: request and reply over shared queues."""

from __future__ import annotations

from collections.abc import Iterator

from exchange_simulation.messaging.request_reply_paper import PRELOADED_BESIDE_OURS
from exchange_simulation.papers.claims import Claim, Statistic
from exchange_simulation.papers.paper import Absent, BenchPart, Paper, PaperItem
from exchange_simulation.papers.statistics import Read, figure_at, figure_of, largest, quotient, ratio, smallest_ratio

REPLIES = "replies_per_s"
INDEXED = "indexed"
SCAN = "scan"
SIZES = "100,512,1024,5120,10240,20480,30720,40960,65536"
OVER_AMQP = "--transport amqp --match indexed,scan"


def _short(warm_up_s: float, sample_s: float) -> str:
    """How a measurement differs from the paper's in its length."""
    return (
        f"{warm_up_s:g} s of warm-up and a sample of {sample_s:g} s, where the paper took 3 and 5 minutes; a thread "
        "that searches may need longer for one reply"
    )


QUICK_TIMES = "--warm-up 0.1 --sample 0.3"
QUICK = "with --quick 0.1 s of warm-up and a sample of 0.3 s"

PARTS = (
    BenchPart(
        name="by-threads",
        benchmark="request-reply",
        items=(
            PaperItem(
                "figures 2, 3",
                "replies/s by threads, 1 to 8 clients, 1 KiB",
                _short(0.5, 2),
                quick=f"{QUICK}; 12 of the 120 combinations of clients and threads",
            ),
        ),
        full=f"{OVER_AMQP} --clients 1..8 --threads 1..15 --sizes 1KiB",
        quick=f"{OVER_AMQP} --clients 1,4,6,8 --threads 1,8,15 --sizes 1KiB {QUICK_TIMES}",
    ),
    BenchPart(
        name="by-threads-64k",
        benchmark="request-reply",
        items=(
            PaperItem(
                "figures 4, 5",
                "the same, 64 KiB",
                _short(0.5, 2),
                quick=f"{QUICK}; 4 of the 120 combinations, of 1 and 4 clients",
            ),
        ),
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
                f"indexed, what lies preloaded is in another queue, of a client that is away; {_short(3, 20)}",
                quick=f"{QUICK}; 0, 50 and 1,000 messages",
            ),
        ),
        published=PRELOADED_BESIDE_OURS,
        has_papers_lines=True,
        full=f"{OVER_AMQP} --clients 6 --threads 1 --preload 0,50,100,150,200,300,500,1000 --warm-up 3 --sample 20",
        quick=f"{OVER_AMQP} --clients 6 --threads 1 --preload 0,50,1000 {QUICK_TIMES}",
    ),
    BenchPart(
        name="peaks",
        benchmark="request-reply",
        items=(
            PaperItem(
                "figures 7, 8, tables 1, 4, 5",
                "peaks of one client and of all, by size",
                _short(0.2, 0.5),
                quick=f"{QUICK}; 3 of 9 sizes, 4 of the 120 combinations, of 1 and 4 clients",
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
                "test procedures, previously published results",
                "requests that do not wait for their replies",
                "1,000 requests ahead, whose replies are still received, and are what is counted; indexed alone: a "
                f"search waits for one reply at a time; the paper prints no numbers; {_short(0.5, 2)}",
                quick=QUICK,
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


SMALLEST_ADVANTAGE = smallest_ratio(REPLIES, "match", INDEXED, SCAN)
"""The index's rate over the search's, in the cell where they are closest."""


def _advantage(figure: str, **point: int) -> Read:
    """The largest value of a figure by the index, over that by the search."""
    return quotient(largest(figure, match=INDEXED, **point), largest(figure, match=SCAN, **point))


def _of_64_kib(words: str, above: Read, below: Read) -> Statistic:
    return ratio(words, "by-threads-64k", above, below)


def _claims_of_64_kib() -> Iterator[Claim]:
    """Figures 4 and 5: the index and the search with large messages."""
    yield Claim(
        "figures 4, 5",
        "Messages of 64 KiB, too, are served more by the index for every combination of clients and threads.",
        figure_of(
            "replies/s of 64 KiB, indexed over scan, of the combination with the smallest ratio",
            "by-threads-64k",
            SMALLEST_ADVANTAGE,
        ),
        at_least=1.0,
    )
    yield Claim(
        "figure 4, table 4",
        "A single client is served almost 4 times as much by the index, 64 KiB.",
        _of_64_kib(
            "peak replies/s of one client, 64 KiB, indexed over scan",
            largest(REPLIES, match=INDEXED, clients=1),
            largest(REPLIES, match=SCAN, clients=1),
        ),
        at_least=3.0,
        at_most=4.0,
        of_hardware=True,
    )
    yield Claim(
        "figure 4, table 5",
        "The peak of all clients is 27 % higher by the index, 64 KiB.",
        _of_64_kib(
            "peak replies/s, 64 KiB, indexed over scan", largest(REPLIES, match=INDEXED), largest(REPLIES, match=SCAN)
        ),
        at_least=1.1,
        at_most=1.5,
        of_hardware=True,
    )
    yield Claim(
        "figure 4",
        "Indexed, a single client has almost the peak of all, 64 KiB.",
        _of_64_kib(
            "peak replies/s of one client over all, 64 KiB, indexed",
            largest(REPLIES, match=INDEXED, clients=1),
            largest(REPLIES, match=INDEXED),
        ),
        at_least=0.8,
        of_hardware=True,
    )
    yield Claim(
        "figure 4",
        "Searched, a single client has about 29 % of the peak of all, 64 KiB.",
        _of_64_kib(
            "peak replies/s of one client over all, 64 KiB, scan",
            largest(REPLIES, match=SCAN, clients=1),
            largest(REPLIES, match=SCAN),
        ),
        at_least=0.2,
        at_most=0.4,
        of_hardware=True,
    )
    yield Claim(
        "figures 4, 5",
        "Searched, four clients serve less as threads are added, 64 KiB.",
        _of_64_kib(
            "replies/s of 8 threads over 1, 4 clients, 64 KiB, scan", _replies(SCAN, 4, 8), _replies(SCAN, 4, 1)
        ),
        at_most=1.0,
    )
    yield Claim(
        "figures 4, 5",
        "Indexed, the rate is stable as clients and threads are added, 64 KiB.",
        _of_64_kib(
            "replies/s of 4 clients with 8 threads over the peak, 64 KiB, indexed",
            _replies(INDEXED, 4, 8),
            largest(REPLIES, match=INDEXED),
        ),
        at_least=0.8,
    )


def _claims_on_the_advantage() -> Iterator[Claim]:
    """What makes the advantage of the index over the search larger, and smaller."""
    yield Claim(
        "figure 6, table 3",
        "The index serves more than the search whatever number of replies lies preloaded.",
        figure_of(
            "replies/s, indexed over scan, of the preloaded number with the smallest ratio",
            "preload",
            SMALLEST_ADVANTAGE,
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
        "summary, figures 7, 8",
        "The index serves more than the search for every size, too, with every combination of clients and threads.",
        figure_of(
            "replies/s, indexed over scan, of the size and combination with the smallest ratio",
            "peaks",
            SMALLEST_ADVANTAGE,
        ),
        at_least=1.0,
    )
    yield Claim(
        "table 4",
        "By table 4 the advantage of the index to a single client shrinks as messages grow: from 17 times to 4 times.",
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
        "By table 5 the advantage of the index at the peak of all clients shrinks as messages grow: from 4.3 to 1.3 "
        "times.",
        ratio(
            "peak kB/s, indexed over scan, of 64 KiB over the same of 100 B",
            "peaks",
            _advantage("kilobytes_per_s", size_bytes=65536),
            _advantage("kilobytes_per_s", size_bytes=100),
        ),
        at_most=1.0,
    )
    for of_whom, cores in (("server", "broker_cores"), ("client", "client_cores")):
        yield Claim(
            "summary of figures 2, 3",
            f"The index serves far more messages for the same use of a {of_whom}'s processors.",
            _by_threads(
                f"replies/s for a core of the {'broker' if of_whom == 'server' else 'clients'}, 6 clients with 1 "
                "thread, indexed over scan",
                _replies_for_a_core(INDEXED, cores),
                _replies_for_a_core(SCAN, cores),
            ),
            at_least=2.0,
        )


def _replies_for_a_core(match: str, cores: str) -> Read:
    cores_used = figure_at(cores, match=match, clients=6, threads=1, preloaded=0)
    return quotient(_replies(match, 6, 1), cores_used)


def _claims_by_size() -> Iterator[Claim]:
    """What the size of a message does, to the index and to the search."""
    for match, product in ((INDEXED, "MQSeries, by an index"), (SCAN, "MSMQ, by a search")):
        for whose, place, clients in (
            ("all clients", "figure 8, table 5", None),
            ("one client", "figure 7, table 4", 1),
        ):
            point = {} if clients is None else {"clients": clients}
            yield Claim(
                place,
                f"The peak of {whose} in kB/s rises with the size of the message: {product}.",
                ratio(
                    f"peak kB/s of {whose}, 64 KiB over 100 B, {match}",
                    "peaks",
                    largest("kilobytes_per_s", size_bytes=65536, match=match, **point),
                    largest("kilobytes_per_s", size_bytes=100, match=match, **point),
                ),
                at_least=1.0,
            )
        yield Claim(
            "figures 2 to 5",
            f"The rate in messages is lower with 64 KiB than with 1 KiB, for any combination: {product}.",
            figure_of(
                f"replies/s of 1 KiB over 64 KiB, of the combination with the smallest ratio, {match}",
                "peaks",
                smallest_ratio(REPLIES, "size_bytes", 1024, 65536, match=match),
            ),
            at_least=1.0,
        )


def _claims_on_threads_that_search() -> Iterator[Claim]:
    """Figures 2 and 3: what further threads and clients do to the search, 1 KiB."""
    yield Claim(
        "figure 2",
        "Searched, a client serves slightly more as threads are added.",
        _by_threads("replies/s of 15 threads over 1, 1 client, scan", _replies(SCAN, 1, 15), _replies(SCAN, 1, 1)),
        at_least=1.0,
        of_hardware=True,
    )
    yield Claim(
        "figure 2",
        "Searched, a single client has about a quarter of the peak of all.",
        _by_threads(
            "peak replies/s of one client over all, scan",
            largest(REPLIES, match=SCAN, clients=1),
            largest(REPLIES, match=SCAN),
        ),
        at_least=0.2,
        at_most=0.33,
        of_hardware=True,
    )
    yield Claim(
        "figure 3",
        "Above four clients the peak of a server that is searched rises slightly.",
        _by_threads(
            "peak replies/s of 6 clients over 4, scan",
            largest(REPLIES, match=SCAN, clients=6),
            largest(REPLIES, match=SCAN, clients=4),
        ),
        at_least=1.0,
        at_most=1.25,
        of_hardware=True,
    )
    yield Claim(
        "figure 2",
        "Searched, four clients drop suddenly when they have more than 12 threads each.",
        _by_threads("replies/s of 15 threads over 8, 4 clients, scan", _replies(SCAN, 4, 15), _replies(SCAN, 4, 8)),
        at_most=0.75,
    )
    yield Claim(
        "figure 3",
        "Six clients with 15 threads each are served over 7 times as much by the index.",
        _by_threads(
            "replies/s of 6 clients with 15 threads, indexed over scan", _replies(INDEXED, 6, 15), _replies(SCAN, 6, 15)
        ),
        at_least=7.0,
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
        at_least=0.8,
        of_hardware=True,
    ),
    Claim(
        "figure 2",
        "Further clients do not raise the rate of a server that indexes.",
        _by_threads(
            "peak replies/s of all clients over one, indexed",
            largest(REPLIES, match=INDEXED),
            largest(REPLIES, match=INDEXED, clients=1),
        ),
        at_most=1.1,
        of_hardware=True,
    ),
    Claim(
        "figure 2",
        "Further threads of a client do not raise the rate of a server that indexes.",
        _by_threads(
            "replies/s of 8 threads over 1, 1 client, indexed", _replies(INDEXED, 1, 8), _replies(INDEXED, 1, 1)
        ),
        at_most=1.1,
        of_hardware=True,
    ),
    Claim(
        "figure 2",
        "A server that is searched serves linearly more with each client, up to about four.",
        _by_threads("replies/s of 4 clients over 1, 1 thread, scan", _replies(SCAN, 4, 1), _replies(SCAN, 1, 1)),
        at_least=3.0,
        of_hardware=True,
    ),
    *_claims_on_threads_that_search(),
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
        "Searched, six clients with 15 threads each are served at a little over a third of the peak.",
        _by_threads(
            "replies/s of 6 clients with 15 threads over the peak, scan",
            _replies(SCAN, 6, 15),
            largest(REPLIES, match=SCAN),
        ),
        at_least=0.25,
        at_most=0.5,
        of_hardware=True,
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
        figure_of(
            "replies/s, indexed over scan, of the combination with the smallest ratio", "by-threads", SMALLEST_ADVANTAGE
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
        of_hardware=True,
    ),
    Claim(
        "figures 2, 3, table 5",
        "At its peak the search is served at less than a quarter of the index's rate.",
        _by_threads("peak replies/s, scan over indexed", largest(REPLIES, match=SCAN), largest(REPLIES, match=INDEXED)),
        at_most=0.25,
        of_hardware=True,
    ),
    Claim(
        "figure 6, tables 2, 3",
        "A thousand preloaded replies bring the search down to a tenth or less: a sixteenth there.",
        ratio("replies/s with 1,000 preloaded over none, scan", "preload", _preloaded(SCAN, 1000), _preloaded(SCAN, 0)),
        at_most=0.1,
    ),
    Claim(
        "figure 6, tables 2, 3",
        "Even a very small number, 50, costs the search a quarter or more: 42 % there.",
        ratio("replies/s with 50 preloaded over none, scan", "preload", _preloaded(SCAN, 50), _preloaded(SCAN, 0)),
        at_most=0.75,
    ),
    *_claims_of_64_kib(),
    *_claims_on_the_advantage(),
    *_claims_by_size(),
    Claim(
        "test procedures, previously published results",
        "Clients that do not wait for their replies make the figures substantially larger.",
        ratio(
            "replies/s with 1,000 requests ahead over 1",
            "counter-test",
            figure_at(REPLIES, clients=4, ahead=1000),
            figure_at(REPLIES, clients=4, ahead=1),
        ),
        at_least=1.5,
    ),
)
PAPER = Paper(
    name="request-reply",
    title="IBM: MQSeries 5.1 and Microsoft Message Queue 2.0, request and reply on shared queues",
    citation="IBM: a performance comparison of IBM MQSeries 5.1 and Microsoft Message Queue 2.0 on Windows 2000. 2000.",
    contents=(
        *PARTS,
        Absent(
            PaperItem("figure 1", "eight client machines and a server of four processors, on a switch"),
            "here all share one machine over loopback, so clients take processor time from the broker",
        ),
        Absent(
            PaperItem("MQSeries, MSMQ", "the two products"),
            "RabbitMQ stands for both: with a reply queue for each thread in place of MQSeries' index, and with a "
            "search of one shared queue for MSMQ",
        ),
        Absent(
            PaperItem("tables 2, 3, MQSeries", "what its index loses by messages that lie preloaded"),
            "indexed, they lie in a queue that no client reads, so they cannot change our rate",
        ),
        Absent(
            PaperItem(
                "test procedures, preloading", "queues that are not cleared before a test, where MSMQ gets worse"
            ),
            "each cell here has new queues",
        ),
        Absent(
            PaperItem("summary, Microsoft's disks", "hardware with several disks"),
            "messages lie in memory, and the paper prints no figures of them",
        ),
    ),
    claims=CLAIMS,
    open_questions=(
        "MQSeries indexes a shared queue by correlation id. AMQP 0-9-1 cannot, so each thread has its own queue, to "
        "which its replies are pushed.",
        "AMQP 0-9-1 cannot search, either. Ours takes each message out of the queue, one round trip each, hides it "
        "from other threads while it holds it, gives it back, and pauses for up to 1 ms at the queue's end. MSMQ's "
        "search ran over messages that stayed in place. At 1 client and 1 thread nothing is searched: there the "
        "difference is the round trip and the pauses alone.",
        "Threads of a client share Python's lock, and one process answers all requests over a link of its own. The "
        "paper does not say how its server answered.",
        "A peak is the largest of many cells, each measured for a short time, so it lies above a flat curve's mean.",
        "The summary and the titles of tables 2 and 3 say request queue. The captions below them, figure 6 and the "
        "section on preloading say response queue, as here.",
        "6 clients with 1 thread, by which preloading is measured, is where MSMQ had its peak; the search here has it "
        "elsewhere. 498.6 stands for 1 client with 1 thread and, in tables 2 and 3, for 6.",
        '"Several times for every combination" is 1.3 to 2 in table 5 from 20 kB on. "The rate falls with the '
        'size" is 510 replies/s at 100 B and 527 at 512 B by table 4. Two ratios of table 4 and one of table 5 are '
        "off by 0.1 to 0.3.",
        "Bounds are our readings: about within a third, almost 4 times from 3 to 4, linear to four clients from 3, "
        "far more and grows from twice, substantially from 1.5, no more up to 1.1.",
    ),
    notice=(
        "RabbitMQ stands for both products. Where this page says index, each thread has a reply queue of its own and "
        "nothing is searched; where it says search, all share one reply queue."
    ),
)
