"""Request-reply on shared queues: clients' threads that each wait for their own reply.

    client 1: threads 1..t  ──request──▶                              ──▶  server
    client c: threads 1..t  ──request──▶  [one queue of requests]          │ the same bytes back
                                                                           ▼
    indexed   each thread   ◀──  [a queue of its own, named in the request]   Q0 lie in the own queue of a gone client
    scan      each thread   ◀──  [one queue of replies]                       Q0 lie in it, for a gone client

Brokerless: a ROUTER, which knows the sender of each request, and DEALERs. There is no queue in which messages could
lie, so there is neither scan nor preload.

A thread sends a request, waits for its own reply (by correlation id), and repeats; a warm-up, then the sample. In a
scan it takes the queue's next message, holds it if it is another thread's, and gives it back once it has its own: AMQP
0-9-1 has no way to ask for one message, while the paper's queues had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from exchange.words import counted
from messaging.benchmark import (
    Benchmark,
    Cell,
    Column,
    Figures,
    Makes,
    Plot,
    Point,
    Published,
    Results,
    Settings,
    size_in_words,
)  # fmt: skip
from messaging.options import SAMPLE_SECONDS, numbers, sizes
from messaging.requests import AnswerAll, AskOwn, reply_figures, wrong_with_asking
from messaging.roles import Links, Role, check_descriptors
from reports.exports import grouped
from reports.formats import number
from runs.option_types import Listed, OneOf
from transports.base import Pattern

PATTERN = {"indexed": Pattern.REQUESTS, "scan": Pattern.SCAN}
CURVE = {"clients": 6, "threads": 1, "size_bytes": 1024}
"""The cell in which messages are preloaded, as in the paper."""
PEAKS = {  # MQSeries and MSMQ with one client (table 4), and with 1 to 8 (table 5), kB/s
    100: (51.0, 3.0, 51.0, 12.0), 512: (270.0, 15.5, 270.0, 60.7), 1024: (510.6, 31.3, 510.6, 125.3),
    5120: (1575.1, 155.0, 1587.8, 594.8), 10240: (2802.9, 303.3, 2802.9, 1129.9),
    20480: (4363.1, 591.0, 4363.1, 2182.5), 30720: (5548.2, 855.6, 5548.2, 3040.6),
    40960: (6234.9, 1104.3, 6542.1, 3938.2), 65536: (6372.1, 1655.2, 7135.6, 5617.8),
}  # fmt: skip
PEAK, OF_ONE, OF_ALL = "peak_kilobytes_per_s", "of one client", "of all clients"
PRELOAD = (0, 50, 100, 150, 200, 300, 500, 1000)
PAPER_INDEXED = (498.6, 489.9, 484.7, 482.2, 475.1, 471.2, 441.3, 376.5)
PAPER_SCANNED = (122.3, 71.3, 49.4, 37.6, 30.2, 21.6, 14.1, 7.4)
OPTIONS = (
    numbers("--clients", "clients", 256, "1,2,4,8", "C", "Processes that ask."),
    numbers("--threads", "threads", 256, "1,4,15", "T", "Threads of each, with a link of their own."),
    sizes("1KiB"),
    numbers("--preload", "messages", 1_000_000, "0", "Q0",
            "Replies to a client that has gone, with 6 clients, 1 thread, 1 KiB.", least=0),
    numbers("--ahead", "requests", 10_000, "1", "N",
            "Requests that a thread may send before a reply: 1 waits for each, as the paper does."),
    click.Option(["--match"], type=Listed(OneOf(list(PATTERN))), default="indexed", show_default=True,
                 help="How a thread finds its own reply."),
    click.Option(["--warm-up", "warm_up_s"], type=SAMPLE_SECONDS, default=0.5, show_default=True, help="Seconds."),
    click.Option(["--sample", "sample_s"], type=SAMPLE_SECONDS, default=2.0, show_default=True, help="Seconds."),
)  # fmt: skip
KB, RATE = "kilobytes_per_s", "replies_per_s"
Row = dict[str, Any]


def points(settings: Settings) -> list[Point]:
    """Clients by threads by sizes, with nothing preloaded; then the paper's cell with what is preloaded."""
    links = max(settings["clients"]) * max(settings["threads"])
    check_descriptors(links, f"{links} threads have a connection each")
    grid = [
        {"match": match, "clients": clients, "threads": threads, "size_bytes": size, "preloaded": 0, **ahead}
        for match in settings["match"] for size in settings["sizes"]
        for clients in settings["clients"] for threads in settings["threads"] for ahead in _aheads(settings)
    ]  # fmt: skip
    preloads = settings["preload"] if max(settings["preload"]) else ()
    curve = [{"match": match, **CURVE, "preloaded": preload} for match in settings["match"] for preload in preloads]
    return grid + [point for point in curve if point not in grid]


def _aheads(settings: Settings) -> list[Point]:
    asked: tuple[int, ...] = settings.get("ahead") or (1,)
    return [{}] if asked == (1,) else [{"ahead": ahead} for ahead in asked]


def unsupported(cell: Cell) -> str | None:
    if not cell.has_broker and (cell.point["match"] == "scan" or cell.point["preloaded"]):
        return "no queue that could be scanned or preloaded (--match indexed --preload 0 needs none)"
    if cell.point["match"] == "scan" and cell.point.get("ahead", 1) > 1:
        return "a scan looks for one reply at a time (--match indexed can be ahead)"
    return None


def roles(cell: Cell, links: Links) -> list[Role]:
    clients, threads = cell.point["clients"], cell.point["threads"]
    (server,), client = links.many(cell.size, PATTERN[cell.point["match"]])
    ahead = cell.point.get("ahead", 1)
    asks = AskOwn(cell.size, cell.settings["warm_up_s"], cell.settings["sample_s"], ahead)
    return [
        Role("server", AnswerAll(cell.size, clients * threads, ahead), (server,)),
        *(Role(f"client {number}", asks, (client,) * threads, begins=True) for number in range(1, clients + 1)),
    ]


def preload(cell: Cell, roles: Sequence[Role]) -> None:
    """Leave replies to a client that has gone."""
    from transports.amqp.broker import leave_answers

    if messages := cell.point["preloaded"]:
        (end,) = roles[0].ends
        leave_answers(end.url, end.token, end.pattern, bytes(cell.size), messages)


def figures(cell: Cell, results: Results) -> Figures:
    clients = [result for name, result in results.items() if name != "server"]
    looked_at = sum(fact.get("looked_at", 0) for client in clients for fact in client.facts)
    looks = {"looks_per_reply": looked_at / sum(client.received for client in clients)} if looked_at else {}
    found = reply_figures(cell.size, clients, cell.settings["sample_s"])
    return {**found, **looks} if found else {}


def peaks(rows: Sequence[Row]) -> list[str]:
    """Sum rows up as the paper's tables 1 and 2 do: peaks, response time, share of the rate that preloading leaves."""
    measured = [row for row in rows if RATE in row["figures"]]
    grid = [row for row in measured if not row["point"]["preloaded"] and row["point"].get("ahead", 1) == 1]
    alike = grouped(grid, _series_and_size)
    return [
        *(_peak(series, own) for series, own in alike.items()),
        *_left_by_preloading(grouped(measured, _series)),
        *_gained_by_not_waiting(measured),
    ]


def peaks_by_size(rows: Sequence[Row]) -> list[Row]:
    """A row for the peak of each size, of one client and of all, as in the paper's tables 4 and 5."""
    waits = [row for row in rows if KB in row["figures"] and not row["point"]["preloaded"]
             and row["point"].get("ahead", 1) == 1]  # fmt: skip
    alike = grouped(waits, _series_and_size)
    return [
        _peak_row(which, max(own, key=lambda row: _median(row, KB)))
        for cells in alike.values()
        for which, own in ((OF_ONE, [row for row in cells if row["point"]["clients"] == 1]), (OF_ALL, cells))
        if own
    ]


def _peak_row(which: str, best: Row) -> Row:
    point = {"peak": which, "match": best["point"]["match"], "size_bytes": best["point"]["size_bytes"]}
    return {"transport": best["transport"], "point": point, "figures": {PEAK: best["figures"][KB]}}


def _published_peaks() -> Iterator[Published]:
    """The 36 peaks that the paper prints: tables 1, 4 and 5."""
    for which, at in ((OF_ONE, 0), (OF_ALL, 2)):
        for size, found in PEAKS.items():
            yield Published(f"MQSeries and MSMQ, peak {which}, {size:,} bytes, kB/s",
                            f"{found[at]:,} and {found[at + 1]:,}", figure=PEAK,
                            where={"peak": which, "size_bytes": size})  # fmt: skip


def _peak_plot(figure: int, which: str, at: int) -> Plot:
    lines = [(name, tuple((size, found[at + place]) for size, found in PEAKS.items()))
             for place, name in enumerate(("MQSeries", "MSMQ"))]  # fmt: skip
    beside = tuple(Published(name, "", points=points) for name, points in lines)
    return Plot(f"Peak {which} by size (figure {figure})", PEAK, "kB/s", where={"peak": which}, beside=beside)


def _series(row: Row) -> str:
    return f"{row['transport']}, {row['point']['match']}"


def _series_and_size(row: Row) -> str:
    return f"{_series(row)}, {size_in_words(row['point']['size_bytes'])}"


def _median(row: Row, name: str) -> float:
    return float(row["figures"][name]["median"])


def _peak(series: str, rows: Sequence[Row]) -> str:
    """Peaks of all cells and of one client; and the response time of one thread alone."""
    of_one = [row for row in rows if row["point"]["clients"] == 1]
    clauses = [f"peak {_best(rows)}", *([f"of one client {_best(of_one)}"] if of_one else [])]
    alone = [row for row in of_one if row["point"]["threads"] == 1]
    clauses += [f"response time, 1 client, 1 thread: {number(1e3 / _median(row, RATE))} ms" for row in alone]
    return f"{series}: {'; '.join(clauses)}"


def _best(rows: Sequence[Row]) -> str:
    best = max(rows, key=lambda row: _median(row, KB))
    cell = f"{counted(best['point']['clients'], 'clients')}, {counted(best['point']['threads'], 'threads')}"
    return f"{number(_median(best, KB))} kB/s ({cell})"


def _left_by_preloading(curves: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Compare the most preloaded with nothing preloaded, for the same clients, threads and size."""
    for series, rows in curves.items():
        last = max(rows, key=lambda row: int(row["point"]["preloaded"]))
        same = {**last["point"], "preloaded": 0}
        first = next((row for row in rows if row["point"] == same), None)
        if first is not None and last is not first:
            share = number(100 * _median(last, RATE) / _median(first, RATE))
            yield f"{series}: with {last['point']['preloaded']:,} preloaded, {share} % of the rate without"


def _gained_by_not_waiting(rows: Sequence[Row]) -> Iterator[str]:
    """Compare the peak of threads that do not wait with the peak of those that do, of the same size."""
    for series, own in grouped(rows, _series_and_size).items():
        ahead = [row for row in own if row["point"].get("ahead", 1) > 1]
        waits = [row for row in own if row["point"].get("ahead") == 1]
        if ahead and waits:
            best, other = (max(_median(row, RATE) for row in each) for each in (ahead, waits))
            yield f"{series}: {number(best / other)} times the replies/s where threads do not wait for their replies"


BENCHMARK = Benchmark(
    about="clients' threads wait for their own reply: rate by clients, threads, and what else lies there",
    paper="IBM MQSeries and MSMQ (2000), figures 2 to 8, tables 1 to 5",
    points=points,
    roles=roles,
    judge=lambda _cell, results: wrong_with_asking(results),
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
        _peak_plot(7, OF_ONE, 0),
        _peak_plot(8, OF_ALL, 2),
        Plot("Replies that are not waited for", "replies_per_s", "replies/s", x="ahead", x_unit="requests ahead"),
        Plot("Replies by what lies preloaded", "replies_per_s", "replies/s", x="preloaded", x_unit="messages, Q0",
             where=CURVE, linear=True, log_y=True, beside=(
                 Published("indexed", "", points=tuple(zip(PRELOAD, PAPER_INDEXED, strict=True))),
                 Published("searched", "", points=tuple(zip(PRELOAD, PAPER_SCANNED, strict=True))),
             )),
    ),
    derived=peaks_by_size,
    published=(
        *_published_peaks(),
        Published("MQSeries, which indexes, and MSMQ, which searches: replies/s, peak, 1,024 bytes", "498.6 and 122.3"),
        Published("the same, with 1,000 messages preloaded", "376.5 and 7.4"),
        Published("response time, 1 client, 1 thread", "2.0 ms and 35.9 ms"),
    ),
    makes=(
        Makes("figures 2, 3", "replies/s by threads, 1 to 8 clients, 1 KiB",
              "--clients 1..8 --threads 1..15 --sizes 1KiB"),
        Makes("figures 4, 5", "the same, 64 KiB", "--clients 1..8 --threads 1..15 --sizes 64KiB"),
        Makes("figure 6, tables 2, 3", "replies/s by what lies preloaded",
              "--clients 6 --threads 1 --preload 0,50,100,150,200,300,500,1000 --match indexed,scan"),
        Makes("figures 7, 8, tables 1, 4, 5", "peaks of one client and of all, by size",
              "--clients 1..8 --threads 1..15 --sizes 100,512,1024,5120,10240,20480,30720,40960,65536"),
        Makes("counter-test", "requests that do not wait for their replies",
              "--clients 1..8 --threads 1 --ahead 1,1000"),
    ),
    options=OPTIONS,
    summary=peaks,
    unsupported=unsupported,
    prepare=preload,
    patterns=lambda cell: [PATTERN[cell.point["match"]]],
    quick={"clients": (1, 4), "threads": (1, 8), "preload": (0, 100, 1000), "match": ("indexed", "scan"),
           "warm_up_s": 0.2, "sample_s": 0.5, "repeats": 2},
)  # fmt: skip
