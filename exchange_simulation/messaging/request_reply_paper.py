"""The paper of request-reply: the values of its tables 1 to 5, the plots of its figures 2 to 8, and their commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.peaks import OF_ALL_CLIENTS, OF_ONE_CLIENT, PEAK, REPLIES_PER_S
from exchange_simulation.messaging.presentation import Plot


@dataclass(frozen=True)
class PaperPeaks:
    """Peaks of the paper's two queue managers, in kB/s."""

    mqseries: float
    msmq: float
    ratio: float
    """MQSeries over MSMQ, as the table prints it."""
    mqseries_threads: int | None = None
    """The threads of the peak, in the table of one client."""
    msmq_threads: int | None = None

    @property
    def words(self) -> str:
        """Both peaks, with the threads that are printed behind them, and the ratio. For example: 51 (2), 3 (4): 17."""
        mqseries = f"{self.mqseries:,} ({self.mqseries_threads})" if self.mqseries_threads else f"{self.mqseries:,}"
        msmq = f"{self.msmq:,} ({self.msmq_threads})" if self.msmq_threads else f"{self.msmq:,}"
        return f"{mqseries} and {msmq}; {self.ratio:g} times"


PEAKS_OF_ONE_CLIENT = {
    100: PaperPeaks(mqseries=51.0, msmq=3.0, ratio=17.0, mqseries_threads=2, msmq_threads=4),
    512: PaperPeaks(mqseries=270.0, msmq=15.5, ratio=17.4, mqseries_threads=1, msmq_threads=3),
    1024: PaperPeaks(mqseries=510.6, msmq=31.3, ratio=16.3, mqseries_threads=1, msmq_threads=4),
    5120: PaperPeaks(mqseries=1575.1, msmq=155.0, ratio=10.5, mqseries_threads=2, msmq_threads=9),
    10240: PaperPeaks(mqseries=2802.9, msmq=303.3, ratio=9.3, mqseries_threads=3, msmq_threads=3),
    20480: PaperPeaks(mqseries=4363.1, msmq=591.0, ratio=7.4, mqseries_threads=3, msmq_threads=4),
    30720: PaperPeaks(mqseries=5548.2, msmq=855.6, ratio=6.5, mqseries_threads=3, msmq_threads=14),
    40960: PaperPeaks(mqseries=6234.9, msmq=1104.3, ratio=5.7, mqseries_threads=5, msmq_threads=8),
    65536: PaperPeaks(mqseries=6372.1, msmq=1655.2, ratio=3.9, mqseries_threads=12, msmq_threads=11),
}
"""Table 4: by the size of a message in bytes."""
PEAKS_OF_ALL_CLIENTS = {
    100: PaperPeaks(mqseries=51.0, msmq=12.0, ratio=4.3),
    512: PaperPeaks(mqseries=270.0, msmq=60.7, ratio=4.4),
    1024: PaperPeaks(mqseries=510.6, msmq=125.3, ratio=4.1),
    5120: PaperPeaks(mqseries=1587.8, msmq=594.8, ratio=2.6),
    10240: PaperPeaks(mqseries=2802.9, msmq=1129.9, ratio=2.5),
    20480: PaperPeaks(mqseries=4363.1, msmq=2182.5, ratio=2.0),
    30720: PaperPeaks(mqseries=5548.2, msmq=3040.6, ratio=1.8),
    40960: PaperPeaks(mqseries=6542.1, msmq=3938.2, ratio=1.7),
    65536: PaperPeaks(mqseries=7135.6, msmq=5617.8, ratio=1.3),
}
"""Table 5, of 1 to 8 clients: by the size of a message in bytes."""
PEAKS = {OF_ONE_CLIENT: PEAKS_OF_ONE_CLIENT, OF_ALL_CLIENTS: PEAKS_OF_ALL_CLIENTS}

PRELOADED_MESSAGES = (0, 50, 100, 150, 200, 300, 500, 1000)
REPLIES_PER_S_INDEXED = (498.6, 489.9, 484.7, 482.2, 475.1, 471.2, 441.3, 376.5)
"""Tables 2 and 3, MQSeries: the rate with each number of PRELOADED_MESSAGES."""
REPLIES_PER_S_SEARCHED = (122.3, 71.3, 49.4, 37.6, 30.2, 21.6, 14.1, 7.4)
"""The same, MSMQ."""
RATIOS_BY_PRELOADED = (4.1, 6.9, 9.8, 12.8, 15.7, 21.8, 31.3, 50.9)
"""MQSeries over MSMQ, as table 3 prints it."""
MATCHES = ("indexed", "scan")
"""Our two ways to find a reply: MQSeries' and MSMQ's."""
PRELOADED_POINT = {"clients": 6, "threads": 1, "size_bytes": 1024}
"""Values of the points at which messages are preloaded."""


def _published_peaks() -> Iterator[Published]:
    """The 36 peaks that the paper prints, two in each sentence, with table 4's threads: tables 1, 4 and 5."""
    for peak, peaks_of_sizes in PEAKS.items():
        for size, peaks in peaks_of_sizes.items():
            threads = " (threads)" if peaks.mqseries_threads else ""
            yield Published(
                f"MQSeries and MSMQ, peak {peak}, {size:,} bytes, kB/s{threads}; their ratio",
                peaks.words,
                figure=PEAK,
                where={"peak": peak, "size_bytes": size},
                ratio_of=MATCHES,
            )


def _published_by_preloaded() -> Iterator[Published]:
    """Tables 2 and 3: rates by what lies preloaded, and their ratio."""
    rows = zip(PRELOADED_MESSAGES, REPLIES_PER_S_INDEXED, REPLIES_PER_S_SEARCHED, RATIOS_BY_PRELOADED, strict=True)
    for preloaded, indexed, searched, ratio in rows:
        yield Published(
            f"replies/s, MQSeries and MSMQ, {preloaded:,} messages preloaded; their ratio",
            f"{indexed} and {searched}; {ratio:g} times",
            figure=REPLIES_PER_S,
            where={**PRELOADED_POINT, "preloaded": preloaded},
            ratio_of=MATCHES,
        )


def _peak_plot(figure: int, peak: str) -> Plot:
    """Our peaks by size, with a line for each of the paper's queue managers."""
    peaks_of_sizes = PEAKS[peak].items()
    mqseries = tuple((size, peaks.mqseries) for size, peaks in peaks_of_sizes)
    msmq = tuple((size, peaks.msmq) for size, peaks in peaks_of_sizes)
    return Plot(
        f"Peak {peak} by size (figure {figure})",
        PEAK,
        "kB/s",
        where={"peak": peak},
        published=(Published("MQSeries", "", points=mqseries), Published("MSMQ", "", points=msmq)),
    )


def _plot_by_threads(words: str, size: int) -> Plot:
    return Plot(
        f"Replies by threads, {words}",
        REPLIES_PER_S,
        "replies/s",
        x="threads",
        x_unit="threads of a client",
        where={"preloaded": 0, "size_bytes": size},
        linear=True,
    )


def _peak_rate(size: int, value: str) -> Published:
    """The largest rate of all combinations of clients and threads, over MQSeries and over MSMQ."""
    return Published(
        f"replies/s, MQSeries and MSMQ: peak, {size:,} bytes",
        value,
        figure=REPLIES_PER_S,
        where={"size_bytes": size, "preloaded": 0},
        is_peak=True,
    )


def _response(size: int, value: str) -> Published:
    """The response time of one thread that waits for each reply, which is 1 over its rate, as in the paper."""
    point = {"clients": 1, "threads": 1, "size_bytes": size, "preloaded": 0}
    title = f"response time, MQSeries and MSMQ: 1 client, 1 thread, {size:,} bytes, ours in us (1 over the rate)"
    return Published(title, value, figure=REPLIES_PER_S, where=point, is_reciprocal=True)


PRELOADED_BESIDE_OURS = tuple(_published_by_preloaded())
PUBLISHED = (
    *_published_peaks(),
    *PRELOADED_BESIDE_OURS,
    Published(
        "replies/s, MQSeries and MSMQ: 6 clients, 15 threads, nothing preloaded; their ratio",
        "352.5 and 46.2; over 7 times",
        figure=REPLIES_PER_S,
        where={**PRELOADED_POINT, "threads": 15, "preloaded": 0},
        ratio_of=MATCHES,
    ),
    _peak_rate(1024, "498.6 (1 client, 1 thread) and 122.3 (6 clients, 1 thread)"),
    _peak_rate(65536, "108.9 (2 clients, 2 threads) and 85.7 (6 clients, 1 thread)"),
    _response(1024, "2.0 ms and 35.9 ms"),
    _response(65536, "19.2 ms and 45.4 ms"),
)
PUBLISHED_BY_PRELOADED = (
    Published("indexed", "", points=tuple(zip(PRELOADED_MESSAGES, REPLIES_PER_S_INDEXED, strict=True))),
    Published("searched", "", points=tuple(zip(PRELOADED_MESSAGES, REPLIES_PER_S_SEARCHED, strict=True))),
)
"""The lines of figure 6."""
PLOTS = (
    _peak_plot(7, OF_ONE_CLIENT),
    _peak_plot(8, OF_ALL_CLIENTS),
    _plot_by_threads("1,024 bytes (figures 2, 3)", 1024),
    _plot_by_threads("65,536 bytes (figures 4, 5)", 65536),
    Plot(
        "Replies that are not waited for (counter-test)",
        REPLIES_PER_S,
        "replies/s",
        x="ahead",
        x_unit="requests ahead",
    ),
    Plot(
        "Replies by what lies preloaded (figure 6)",
        REPLIES_PER_S,
        "replies/s",
        x="preloaded",
        x_unit="messages, Q0",
        where=PRELOADED_POINT,
        linear=True,
        log_y=True,
        published=PUBLISHED_BY_PRELOADED,
    ),
)
