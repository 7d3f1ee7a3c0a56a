"""The results of request-reply: peaks of its rows; tables 1 to 5 and figures 2 to 8 of the paper, and its values.

A row is a measured cell: its transport, its point, and the median of each figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from exchange.grouping import grouped
from exchange.words import counted
from exchange_simulation.messaging.benchmark import Makes, Plot, Published, size_in_words
from exchange_simulation.reports.formats.numbers import number_text

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
KB, RATE = "kilobytes_per_s", "replies_per_s"
Row = dict[str, Any]


def in_words(rows: Sequence[Row]) -> list[str]:
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
    waits = [
        row
        for row in rows
        if KB in row["figures"] and not row["point"]["preloaded"] and row["point"].get("ahead", 1) == 1
    ]
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


def _series(row: Row) -> str:
    return f"{row['transport']}, {row['point']['match']}"


def _series_and_size(row: Row) -> str:
    return f"{_series(row)}, {size_in_words(row['point']['size_bytes'])}"


def _median(row: Row, name: str) -> float:
    return float(row["figures"][name]["median"])


def _peak(series: str, rows: Sequence[Row]) -> str:
    """Peaks of all cells and of one client; and the response time of one thread alone."""
    of_one = [row for row in rows if row["point"]["clients"] == 1]
    clauses = [f"peak {_best(rows)}"]
    if of_one:
        clauses.append(f"of one client {_best(of_one)}")
    alone = [row for row in of_one if row["point"]["threads"] == 1]
    clauses += [f"response time, 1 client, 1 thread: {number_text(1e3 / _median(row, RATE))} ms" for row in alone]
    return f"{series}: {'; '.join(clauses)}"


def _best(rows: Sequence[Row]) -> str:
    best = max(rows, key=lambda row: _median(row, KB))
    cell = f"{counted(best['point']['clients'], 'clients')}, {counted(best['point']['threads'], 'threads')}"
    return f"{number_text(_median(best, KB))} kB/s ({cell})"


def _left_by_preloading(curves: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Compare the most preloaded with nothing preloaded, for the same clients, threads and size."""
    for series, rows in curves.items():
        last = max(rows, key=lambda row: int(row["point"]["preloaded"]))
        same = {**last["point"], "preloaded": 0}
        first = next((row for row in rows if row["point"] == same), None)
        if first is not None and last is not first:
            share = number_text(100 * _median(last, RATE) / _median(first, RATE))
            yield f"{series}: with {last['point']['preloaded']:,} preloaded, {share} % of the rate without"


def _gained_by_not_waiting(rows: Sequence[Row]) -> Iterator[str]:
    """Compare the peak of threads that do not wait with the peak of those that do, of the same size."""
    for series, own in grouped(rows, _series_and_size).items():
        ahead = [row for row in own if row["point"].get("ahead", 1) > 1]
        waits = [row for row in own if row["point"].get("ahead") == 1]
        if ahead and waits:
            best = max(_median(row, RATE) for row in ahead)
            other = max(_median(row, RATE) for row in waits)
            ratio = number_text(best / other)
            yield f"{series}: {ratio} times the replies/s where threads do not wait for their replies"


def _published_peaks() -> Iterator[Published]:
    """The 36 peaks that the paper prints: tables 1, 4 and 5."""
    for which, at in ((OF_ONE, 0), (OF_ALL, 2)):
        for size, found in PEAKS.items():
            yield Published(
                f"MQSeries and MSMQ, peak {which}, {size:,} bytes, kB/s",
                f"{found[at]:,} and {found[at + 1]:,}",
                figure=PEAK,
                where={"peak": which, "size_bytes": size},
            )


def _peak_plot(figure: int, which: str, at: int) -> Plot:
    lines = [
        (name, tuple((size, found[at + place]) for size, found in PEAKS.items()))
        for place, name in enumerate(("MQSeries", "MSMQ"))
    ]
    beside = tuple(Published(name, "", points=points) for name, points in lines)
    return Plot(f"Peak {which} by size (figure {figure})", PEAK, "kB/s", where={"peak": which}, beside=beside)


def _by_threads(words: str, size: int) -> Plot:
    return Plot(
        f"Replies by threads, {words}",
        RATE,
        "replies/s",
        x="threads",
        x_unit="threads of a client",
        where={"preloaded": 0, "size_bytes": size},
        linear=True,
    )


PUBLISHED = (
    *_published_peaks(),
    Published("MQSeries, which indexes, and MSMQ, which searches: replies/s, peak, 1,024 bytes", "498.6 and 122.3"),
    Published("the same, with 1,000 messages preloaded", "376.5 and 7.4"),
    Published("the same, 15 threads of each of 6 clients, nothing preloaded", "352.5 and 46.2"),
    Published("the same, peak, 65,536 bytes", "108.9 and 85.7"),
    Published("response time, 1 client, 1 thread, 1,024 bytes", "2.0 ms and 35.9 ms"),
    Published("the same, 65,536 bytes", "19.2 ms and 45.4 ms"),
)
PRELOADED = (
    Published("indexed", "", points=tuple(zip(PRELOAD, PAPER_INDEXED, strict=True))),
    Published("searched", "", points=tuple(zip(PRELOAD, PAPER_SCANNED, strict=True))),
)
"""Tables 2 and 3, figure 6: replies/s by what lies preloaded."""
CURVE = {"clients": 6, "threads": 1, "size_bytes": 1024}
"""The cell in which messages are preloaded."""
PLOTS = (
    _peak_plot(7, OF_ONE, 0),
    _peak_plot(8, OF_ALL, 2),
    _by_threads("1,024 bytes (figures 2, 3)", 1024),
    _by_threads("65,536 bytes (figures 4, 5)", 65536),
    Plot("Replies that are not waited for (counter-test)", RATE, "replies/s", x="ahead", x_unit="requests ahead"),
    Plot(
        "Replies by what lies preloaded (figure 6)",
        RATE,
        "replies/s",
        x="preloaded",
        x_unit="messages, Q0",
        where=CURVE,
        linear=True,
        log_y=True,
        beside=PRELOADED,
    ),
)
MAKES = (
    Makes("figures 2, 3", "replies/s by threads, 1 to 8 clients, 1 KiB", "--clients 1..8 --threads 1..15 --sizes 1KiB"),
    Makes("figures 4, 5", "the same, 64 KiB", "--clients 1..8 --threads 1..15 --sizes 64KiB"),
    Makes(
        "figure 6, tables 2, 3",
        "replies/s by what lies preloaded",
        "--clients 6 --threads 1 --preload 0,50,100,150,200,300,500,1000 --match indexed,scan",
    ),
    Makes(
        "figures 7, 8, tables 1, 4, 5",
        "peaks of one client and of all, by size",
        "--transport amqp --clients 1..8 --threads 1..15 --sizes 100,512,1024,5120,10240,20480,30720,40960,65536"
        " --warm-up 0.2 --sample 0.5 --repeats 1",
        "half a second for each of 1,080 cells, where the paper took five minutes; raise both as you like",
    ),
    Makes("counter-test", "requests that do not wait for their replies", "--clients 1..8 --threads 1 --ahead 1,1000"),
)
