"""Counters of the whole machine while a cell is measured, by second: processors, interrupts, memory, network."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import psutil

from exchange_simulation.launching.interrupts import beside

EVERY_S = 1.0
Reading = dict[str, float]
"""Counters since the machine's start, and levels, with the time."""
RATES = {
    "interrupts": "interrupts_per_s",
    "switches": "switches_per_s",
    "packets": "packets_per_s",
    "bytes": "bytes_per_s",
}
SHARES = {"user": "user_percent", "system": "system_percent"}


def read(broker_rss_bytes: Callable[[], int]) -> Reading:
    """The counters now; of all processors together, and of all network interfaces, loopback among them."""
    cpu = psutil.cpu_times()
    stats = psutil.cpu_stats()
    network = psutil.net_io_counters()
    of_interrupts = sum(getattr(cpu, name, 0.0) for name in ("irq", "softirq"))
    return {
        "s": time.monotonic(),
        "user": cpu.user + cpu.nice,
        "system": cpu.system + of_interrupts,
        "interrupts": stats.interrupts,
        "switches": stats.ctx_switches,
        "packets": network.packets_sent,
        "bytes": network.bytes_sent,
        "used_mb": psutil.virtual_memory().used / 1e6,
        "broker_mb": broker_rss_bytes() / 1e6,
    }


def between(earlier: Reading, later: Reading) -> Reading:
    """Rates and shares of the time between two readings, and the later one's levels."""
    span_s = later["s"] - earlier["s"]
    processors = psutil.cpu_count() or 1
    return {
        **{name: (later[counter] - earlier[counter]) / span_s for counter, name in RATES.items()},
        **{name: 100 * (later[counter] - earlier[counter]) / span_s / processors for counter, name in SHARES.items()},
        "used_mb": later["used_mb"],
        "broker_mb": later["broker_mb"],
    }


@contextlib.contextmanager
def read_every_second(broker_rss_bytes: Callable[[], int]) -> Iterator[list[Reading]]:
    """Read the counters at the start, every second, and at the end."""
    readings = [read(broker_rss_bytes)]

    def read_on(is_over: threading.Event) -> None:
        while not is_over.wait(EVERY_S):
            readings.append(read(broker_rss_bytes))

    with beside(read_on):
        yield readings
    readings.append(read(broker_rss_bytes))


def seconds_of(readings: list[Reading]) -> list[Reading]:
    """Each second's rates and levels; `second` is its end, counted from the start."""
    start_s = readings[0]["s"]
    pairs = pairwise(readings)
    return [{"second": now["s"] - start_s, **between(before, now)} for before, now in pairs if now["s"] > before["s"]]


def figures_of(readings: list[Reading]) -> Reading:
    """The rates over all the time. It has no levels, as memory is one."""
    rates = between(readings[0], readings[-1])
    return {name: rates[name] for name in (*SHARES.values(), "interrupts_per_s")}
