"""Request-reply on shared queues: clients' threads that each wait for their own reply.

    client 1: threads 1..t  ──request──▶                              ──▶  server
    client c: threads 1..t  ──request──▶  [one queue of requests]          │ the same bytes back
                                                                           ▼
    indexed   each thread   ◀──  [a queue of its own, named in the request]   Q0 lie in a gone client's own
    scan      each thread   ◀──  [one queue of replies]                       Q0 lie in it, a gone client's

Brokerless: a ROUTER, which knows whose each request is, and DEALERs. It has no queue in which anything could lie, and
so neither scan nor preload.

A thread sends a request, waits for its own reply (by correlation id), and repeats; a warm-up, then the sample. In a
scan it takes the queue's next message, holds what is another's, and gives it back once it has its own, since AMQP
0-9-1 has no way to ask for one message; the paper's queues had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from messaging.benchmark import Asked, Benchmark, Cell, Column, Figures, Plot, Point, Published
from messaging.descriptors import check_descriptors
from messaging.options import Numbers, Seconds, sizes
from messaging.peaks import peaks
from messaging.places import Places
from messaging.reckoning import reply_figures
from messaging.roles import Role, Told
from runs.options import Listed
from transports.pattern import Pattern

PATTERN = {"indexed": Pattern.REQUESTS, "scan": Pattern.SCAN}
CURVE = {"clients": 6, "threads": 1, "size_bytes": 1024}
"""Where preloaded messages are looked at, as in the paper."""
PRELOAD = (0, 50, 100, 150, 200, 300, 500, 1000)
INDEXED_THERE = (498.6, 489.9, 484.7, 482.2, 475.1, 471.2, 441.3, 376.5)
SCANNED_THERE = (122.3, 71.3, 49.4, 37.6, 30.2, 21.6, 14.1, 7.4)
SECONDS = Seconds(0.01, 3600)
OPTIONS = (
    click.Option(["--clients"], type=Numbers("clients", 1, 256), default="1,2,4,8", show_default=True,
                 metavar="C[,...]", help="Processes that ask."),
    click.Option(["--threads"], type=Numbers("threads", 1, 256), default="1,4,15", show_default=True,
                 metavar="T[,...]", help="Threads of each, with a link of their own."),
    sizes("1KiB"),
    click.Option(["--preload"], type=Numbers("messages", 0, 1_000_000), default="0", show_default=True,
                 metavar="Q0[,...]", help="Replies to a client that has gone, with 6 clients, 1 thread, 1 KiB."),
    click.Option(["--match"], type=Listed(click.Choice(list(PATTERN))), default="indexed", show_default=True,
                 help="How a thread finds its own reply."),
    click.Option(["--warm-up", "warm_up_s"], type=SECONDS, default=0.5, show_default=True, help="Seconds."),
    click.Option(["--sample", "sample_s"], type=SECONDS, default=2.0, show_default=True, help="Seconds."),
)  # fmt: skip


def points(asked: Asked) -> list[Point]:
    """Clients by threads by sizes, with nothing preloaded; then the preloaded, where the paper has them."""
    links = max(asked["clients"]) * max(asked["threads"])
    check_descriptors(links, f"{links} threads have a connection each")
    grid = [
        {"match": match, "clients": clients, "threads": threads, "size_bytes": size, "preloaded": 0}
        for match in asked["match"] for size in asked["sizes"]
        for clients in asked["clients"] for threads in asked["threads"]
    ]  # fmt: skip
    preloaded = [preload for preload in asked["preload"] if max(asked["preload"])]
    curve = [{"match": match, **CURVE, "preloaded": preload} for match in asked["match"] for preload in preloaded]
    return grid + [point for point in curve if point not in grid]


def lacking(cell: Cell) -> str | None:
    if not cell.has_broker and (cell.point["match"] == "scan" or cell.point["preloaded"]):
        return "no queue that could be scanned or preloaded (--match indexed --preload 0 needs none)"
    return None


def roles(cell: Cell, places: Places) -> list[Role]:
    from messaging.asking_own import AnswerAll, AskOwn

    point, pattern = cell.point, PATTERN[cell.point["match"]]
    clients, threads = point["clients"], point["threads"]
    (server,), client = places.together(cell.size, pattern)
    asks = AskOwn(cell.size, cell.asked["warm_up_s"], cell.asked["sample_s"])
    return [
        Role("server", AnswerAll(cell.size, clients * threads), (server,)),
        *(Role(f"client {number}", asks, (client,) * threads, begins=True) for number in range(1, clients + 1)),
    ]


def preload(cell: Cell, roles: Sequence[Role]) -> None:
    """Replies to a client that has gone."""
    from transports.amqp.probe import leave_answers

    if messages := cell.point["preloaded"]:
        (there,) = roles[0].ends
        leave_answers(there.url, there.token, there.pattern, bytes(cell.size), messages)


def judge(_cell: Cell, told: Mapping[str, Told]) -> list[str]:
    from messaging.asking_own import wrong_with_asking

    return wrong_with_asking(told)


def figures(cell: Cell, told: Mapping[str, Told]) -> Figures:
    clients = [of_role for name, of_role in told.items() if name != "server"]
    looked_at = sum(fact.get("looked_at", 0) for client in clients for fact in client.facts)
    looks = {"looks_per_reply": looked_at / sum(client.received for client in clients)} if looked_at else {}
    found = reply_figures(cell.size, clients, cell.asked["sample_s"])
    return {**found, **looks} if found else {}


BENCHMARK = Benchmark(
    name="request-reply",
    about="clients' threads wait for their own reply: rate by clients, threads, and what else lies there",
    paper="IBM MQSeries and MSMQ (2000), figures 2 to 7, tables 1 and 2",
    points=points,
    roles=roles,
    judge=judge,
    figures=figures,
    columns=(
        Column("replies_per_s", "replies/s", with_interval=True),
        Column("kilobytes_per_s", "kB/s"),
        Column("response_mean_us", "mean us"),
        Column("looks_per_reply", "looks a reply"),
    ),
    plots=(
        Plot("Replies by threads", "replies_per_s", "replies/s", x="threads", x_unit="threads of a client",
             where={"preloaded": 0}, linear=True),
        Plot("Throughput by threads", "kilobytes_per_s", "kB/s", x="threads", x_unit="threads of a client",
             where={"preloaded": 0}),
        Plot("Replies by what lies preloaded", "replies_per_s", "replies/s", x="preloaded", x_unit="messages, Q0",
             where=CURVE, linear=True, log_y=True, beside=(
                 Published("indexed", "", points=tuple(zip(PRELOAD, INDEXED_THERE, strict=True))),
                 Published("searched", "", points=tuple(zip(PRELOAD, SCANNED_THERE, strict=True))),
             )),
    ),
    published=(
        Published("MQSeries, which indexes, and MSMQ, which searches: replies/s, peak, 1,024 bytes", "498.6 and 122.3"),
        Published("the same, with 1,000 messages preloaded", "376.5 and 7.4"),
        Published("response time, 1 client, 1 thread", "2.0 ms and 35.9 ms"),
        Published("kB/s, 1 client, peak, 1,024 bytes", "510.6 and 31.3"),
        Published("kB/s, overall peak, 65,536 bytes", "7,135.6 and 5,617.8"),
    ),
    options=OPTIONS,
    in_short=peaks,
    lacking=lacking,
    prepare=preload,
    patterns=lambda cell: [PATTERN[cell.point["match"]]],
    quick={"clients": (1, 4), "threads": (1, 8), "preload": (0, 100, 1000), "match": ("indexed", "scan"),
           "warm_up_s": 0.2, "sample_s": 0.5, "repeats": 2},
)  # fmt: skip
