"""Request-reply on shared queues: clients' threads that each wait for their own reply.

    client 1: threads 1..t  ──request──▶                              ──▶  server
    client c: threads 1..t  ──request──▶  [one queue of requests]          │ the same bytes back
                                                                           ▼
    indexed   each thread   ◀──  [a queue of its own, named in the request]   Q0 in the queue of a client that has gone
    scan      each thread   ◀──  [one queue of replies]                       Q0 in this queue, for such a client

Q0 is the number of preloaded messages. Brokerless: a ROUTER, which knows the sender of each request, and DEALERs. There
is no queue that could hold messages, so there is neither scan nor preload.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from exchange_simulation.launching.option_types import OneOf
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell, Figures, Results
from exchange_simulation.messaging.options import SAMPLE_SECONDS, EachOnce, numbers_option, sizes_option
from exchange_simulation.messaging.paced import askers_fell_behind
from exchange_simulation.messaging.peaks import peaks_by_size, summary_sentences
from exchange_simulation.messaging.point import Point, Settings
from exchange_simulation.messaging.presentation import Column
from exchange_simulation.messaging.request_reply_paper import PLOTS, PRELOADED_POINT, PUBLISHED
from exchange_simulation.messaging.requests import (
    RequestServer,
    ThreadedClient,
    figures_from_due,
    reply_figures,
    wrong_with_replies,
)
from exchange_simulation.messaging.roles import Links, Role, check_descriptors, of_kind
from transports.base import Pattern
from transports.registry import scheme_of, transport_of

PATTERNS = {"indexed": Pattern.REQUESTS, "scan": Pattern.SCAN}
OPTIONS = (
    numbers_option(
        "--clients", noun="clients", most=256, default="1,2,4,8", metavar="C[,...]", help="Processes that ask."
    ),
    numbers_option(
        "--threads",
        noun="threads",
        most=256,
        default="1,4,15",
        metavar="T[,...]",
        help="Threads of each, with a link of their own.",
    ),
    sizes_option("1KiB"),
    numbers_option(
        "--preload",
        noun="messages",
        most=1_000_000,
        default="0",
        metavar="Q0[,...]",
        help="Replies to a client that has gone, with 6 clients, 1 thread, 1 KiB.",
        least=0,
    ),
    numbers_option(
        "--ahead",
        noun="requests",
        most=10_000,
        default="1",
        metavar="N[,...]",
        help="Requests that a thread may send before a reply: 1 waits for each, as the paper does.",
    ),
    click.Option(
        ["--match"],
        type=EachOnce(OneOf(list(PATTERNS))),
        default="indexed",
        show_default=True,
        help="How a thread finds its own reply.",
    ),
    click.Option(["--warm-up", "warm_up_s"], type=SAMPLE_SECONDS, default=0.5, show_default=True, help="Seconds."),
    click.Option(["--sample", "sample_s"], type=SAMPLE_SECONDS, default=2.0, show_default=True, help="Seconds."),
)


def points(settings: Settings) -> list[Point]:
    """Clients by threads by sizes, with nothing preloaded; then the paper's cell with preloaded messages."""
    links = max(settings["clients"]) * max(settings["threads"])
    check_descriptors(links, f"{links} threads have a connection each")
    grid = [
        {"match": match, "clients": clients, "threads": threads, "size_bytes": size, "preloaded": 0, **ahead}
        for match in settings["match"]
        for size in settings["sizes"]
        for clients in settings["clients"]
        for threads in settings["threads"]
        for ahead in _aheads(settings)
    ]
    preloads = settings["preload"] if max(settings["preload"]) else ()
    preloaded_points = [
        {"match": match, **PRELOADED_POINT, "preloaded": preload} for match in settings["match"] for preload in preloads
    ]
    return grid + [point for point in preloaded_points if point not in grid]


def _aheads(settings: Settings) -> list[Point]:
    """The part of a point that `--ahead` makes; empty without the option, as in older records."""
    aheads: tuple[int, ...] = settings.get("ahead") or (1,)
    if aheads == (1,):
        return [{}]
    return [{"ahead": ahead} for ahead in aheads]


def why_unsupported(cell: Cell) -> str | None:
    can_scan = Pattern.SCAN in transport_of(scheme_of(cell.transport)).patterns
    if not can_scan and (cell.point["match"] == "scan" or cell.point["preloaded"]):
        return "no queue that could be scanned or preloaded (--match indexed --preload 0 needs none)"
    if cell.point["match"] == "scan" and cell.point.get("ahead", 1) > 1:
        return "a scan looks for one reply at a time (--match indexed can be ahead)"
    return None


def roles(cell: Cell, links: Links) -> list[Role]:
    clients = cell.point["clients"]
    threads = cell.point["threads"]
    (server,), client = links.many(cell.size, PATTERNS[cell.point["match"]])
    ahead = cell.point.get("ahead", 1)
    ask = ThreadedClient(cell.size, cell.settings["warm_up_s"], cell.sample_s, ahead, cell.load)
    roles = [Role("server", RequestServer(cell.size, clients * threads, ahead), (server,))]
    for number in range(1, clients + 1):
        roles.append(Role(f"client {number}", ask, (client,) * threads, begins=True))
    return roles


def preload(cell: Cell, roles: Sequence[Role]) -> None:
    """Leave replies to a client that has gone in the queue of replies."""
    from transports.amqp.left_answers import leave_answers

    messages = cell.point["preloaded"]
    if messages:
        (end,) = roles[0].ends
        leave_answers(end.url, end.token, end.pattern, bytes(cell.size), messages)


def figures(cell: Cell, results: Results) -> Figures:
    clients = list(of_kind(results, "client").values())
    reply_rates = reply_figures(cell.size, clients, cell.sample_s)
    if not reply_rates:
        return {}
    looked_at = sum(fact.get("looked_at", 0) for client in clients for fact in client.facts)
    if looked_at:
        received = sum(client.received for client in clients)
        reply_rates["looks_per_reply"] = looked_at / received
    return {**reply_rates, **figures_from_due(clients)}


BENCHMARK = BenchmarkDefinition(
    about="clients' threads wait for their own reply: rate by clients, threads, and other replies in the queue",
    paper="IBM MQSeries and MSMQ (2000), figures 2 to 8, tables 1 to 5",
    points=points,
    roles=roles,
    judge=lambda _cell, results: wrong_with_replies(results),
    figures=figures,
    takes_rate=True,
    saturation_reasons=askers_fell_behind,
    columns=(
        Column("replies_per_s", "replies/s", with_interval=True),
        Column("kilobytes_per_s", "kB/s"),
        Column("response_mean_us", "mean us"),
        Column("looks_per_reply", "looks a reply"),
    ),
    plots=PLOTS,
    derived_rows=peaks_by_size,
    published=PUBLISHED,
    options=OPTIONS,
    summary_sentences=summary_sentences,
    why_unsupported=why_unsupported,
    prepare=preload,
    patterns=lambda cell: [PATTERNS[cell.point["match"]]],
    quick_values={
        "clients": (1, 4),
        "threads": (1, 8),
        "preload": (0, 100, 1000),
        "match": ("indexed", "scan"),
        "warm_up_s": 0.2,
        "sample_s": 0.5,
        "repeats": 2,
    },
    quick_help="Fewer clients and threads, two repeats: to see how it looks.",
)
