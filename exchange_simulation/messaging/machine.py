"""Counters of the whole machine while a cell is measured, by second: processors, interrupts, memory, network."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import psutil

from exchange_simulation.launching.interrupts import in_background

EVERY_S = 1.0
"""Interval between two readings."""
Reading = dict[str, float]
"""The time, counters since the machine's start, and levels, as used memory."""
Figures = dict[str, float]
"""Rates, shares of all processors, and levels, by the name of the figure."""
RATES = {
    "interrupts": "interrupts_per_s",
    "switches": "switches_per_s",
    "packets": "packets_per_s",
    "bytes": "bytes_per_s",
}
"""By counter, the name of the figure that is its increase a second."""
SHARES = {"user": "user_percent", "system": "system_percent"}
"""By counter of CPU seconds, the name of the figure that is its share of all processors."""


def read(broker_rss_bytes: Callable[[], int]) -> Reading:
    """The counters now: of all processors together, and of all network interfaces with loopback."""
    cpu = psutil.cpu_times()
    stats = psutil.cpu_stats()
    network = psutil.net_io_counters()
    interrupts_s = sum(getattr(cpu, name, 0.0) for name in ("irq", "softirq"))
    return {
        "s": time.monotonic(),
        "user": cpu.user + cpu.nice,
        "system": cpu.system + interrupts_s,
        "interrupts": stats.interrupts,
        "switches": stats.ctx_switches,
        "packets": network.packets_sent,
        "bytes": network.bytes_sent,
        "used_mb": psutil.virtual_memory().used / 1e6,
        "broker_mb": broker_rss_bytes() / 1e6,
    }


def between(earlier: Reading, later: Reading) -> Figures:
    """Rates and shares of the time between two readings, and the levels of the later reading."""
    span_s = later["s"] - earlier["s"]
    processors = psutil.cpu_count() or 1
    figures: Figures = {}
    for counter, name in RATES.items():
        figures[name] = (later[counter] - earlier[counter]) / span_s
    for counter, name in SHARES.items():
        figures[name] = 100 * (later[counter] - earlier[counter]) / span_s / processors
    figures["used_mb"] = later["used_mb"]
    figures["broker_mb"] = later["broker_mb"]
    return figures


@contextlib.contextmanager
def read_every_second(broker_rss_bytes: Callable[[], int]) -> Iterator[list[Reading]]:
    """Yield a list that gets a reading at the start, every second, and at the end."""
    readings = [read(broker_rss_bytes)]

    def read_until_over(is_over: threading.Event) -> None:
        while not is_over.wait(EVERY_S):
            readings.append(read(broker_rss_bytes))

    with in_background(read_until_over):
        yield readings
    readings.append(read(broker_rss_bytes))


def seconds_of(readings: list[Reading]) -> list[Figures]:
    """Each second's rates and levels; `second` is the end of the second, counted from the start."""
    start_s = readings[0]["s"]
    seconds: list[Figures] = []
    for before, now in pairwise(readings):
        if now["s"] > before["s"]:
            seconds.append({"second": now["s"] - start_s, **between(before, now)})
    return seconds


def figures_of(readings: list[Reading]) -> Figures:
    """Shares of the processors and interrupts a second, over the whole time."""
    rates = between(readings[0], readings[-1])
    return {name: rates[name] for name in (*SHARES.values(), "interrupts_per_s")}
