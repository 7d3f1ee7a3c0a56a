"""Measures for some seconds how much other processes use the machine, and how late a sleeping process wakes up."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from exchange.words import counted
from exchange_simulation.launching.doctor.items import Item
from exchange_simulation.launching.priority import wake_on_time
from exchange_simulation.launching.record.machine import has_proc
from exchange_simulation.launching.record.noise import (
    LEAST_WINDOW_S,
    MOST_SHARE,
    MachineTimes,
    Noise,
    cpu_s_by_process,
    noise_between,
)

SLEEP_S = 0.001
"""The length of each sleep."""
QUIET_SHARE = 0.02
"""The largest share of others on a quiet machine. Above MOST_SHARE, a trial repeats a run."""
GOOD_P99_US = 150.0
"""The largest p99 of a good item. Every figure from due time contains the lateness of wake-ups."""
MOST_P99_US = 1000.0
"""The largest p99 with which a measurement is possible."""
FIRST_BIN_US = 1.0
"""The end of the histogram's first bin. Each further bin ends at twice the previous one; the last has no end."""
BINS = 15
MOST_NAMES = 3
"""The most processes that are named."""


@dataclass(frozen=True)
class WakeUps:
    """The lateness of each of many sleeps."""

    late_us: list[float]
    slack_ns: int | None
    """The timer slack that the system gives a process. Components set theirs to 1 ns."""

    def percentile_us(self, percent: float) -> float:
        """Return the lateness that this percentage of the sleeps did not exceed."""
        ascending = sorted(self.late_us)
        rank = max(1, math.ceil(len(ascending) * percent / 100))
        return ascending[rank - 1]

    @property
    def octaves(self) -> list[int]:
        """The number of sleeps in each bin of the histogram: up to 1 us late, up to 2, 4, 8, ... us."""
        bins = [0] * BINS
        for late_us in self.late_us:
            octave = math.ceil(math.log2(max(late_us, FIRST_BIN_US) / FIRST_BIN_US))
            bins[min(octave, BINS - 1)] += 1
        return bins


def measure_quiet_and_wake_ups(seconds: float, sleep: Callable[[float], None] = time.sleep) -> tuple[Item, Item]:
    """Measure for `seconds`; return the items `quiet` and `wake-ups`."""
    with exact_timers() as slack_ns:
        start = MachineTimes.now() if has_proc() else None
        late_us = list(_sleeps(time.monotonic() + seconds, sleep))
        end = MachineTimes.now() if has_proc() else None
    return quiet(start, end), wake_ups(WakeUps(late_us, slack_ns))


def _sleeps(until_s: float, sleep: Callable[[float], None]) -> Iterator[float]:
    """Sleep again and again until `until_s`; yield the lateness of each sleep in us."""
    before_ns = time.monotonic_ns()
    while before_ns < until_s * 1e9:
        sleep(SLEEP_S)
        yield (time.monotonic_ns() - before_ns) / 1e3 - SLEEP_S * 1e6
        before_ns = time.monotonic_ns()


@contextlib.contextmanager
def exact_timers() -> Iterator[int | None]:
    """Let this thread wake as exactly as components do. Yields the timer slack before, in ns."""
    before_ns = wake_on_time()
    try:
        yield before_ns
    finally:
        if before_ns is not None:
            wake_on_time(before_ns)


def quiet(start: MachineTimes | None, end: MachineTimes | None) -> Item:
    """Return the item `quiet`: which share of all processors other processes took between two readings.

    A reading is None without /proc.
    """
    if start is None or end is None:
        return Item(name="quiet", verdict="unknown", found="not told here: /proc is hidden")
    noise = noise_between(start, end, {os.getpid()})
    facts = noise.as_record({})  # no component of a run was running; `noise` has the time of this process
    share = facts["share_of_all_cpus"]
    if share is None and noise.window_s < LEAST_WINDOW_S:
        reason = f"{noise.window_s:.2f} s are too short for a share: give {LEAST_WINDOW_S:g} s or more"
        return Item(name="quiet", verdict="unknown", found=reason, figures=facts)
    if share is None:
        return Item(name="quiet", verdict="unknown", found="this system does not tell what others use", figures=facts)
    observation = f"others take {share:.1%} of all processors{_steal_and_pressure(noise)}"
    busiest = _busiest(start, end)
    if share <= QUIET_SHARE:
        return Item(name="quiet", verdict="good", found=observation, figures=facts)
    stolen = (noise.steal_s or 0.0) / (noise.window_s * noise.cores)
    advice = f"stop what is not needed: {busiest}" if busiest else ""
    if stolen > share / 2:
        advice = "other guests of this host take it: measure at another hour, or on a machine of its own"
    return Item(
        name="quiet",
        verdict="care" if share <= MOST_SHARE else "no",
        found=observation,
        why=f"others take {share:.0%} of the processors",
        advice=advice,
        figures=facts,
    )


def _steal_and_pressure(noise: Noise) -> str:
    """Return the end of the sentence about the noise.

    For example: , steal 0.0%; some task waits for a processor 12.0% of the time
    """
    steal = "" if noise.steal_s is None else f", steal {noise.steal_s / (noise.window_s * noise.cores):.1%}"
    if noise.cpu_pressure_s is None:
        return steal
    return f"{steal}; some task waits for a processor {noise.cpu_pressure_s / noise.window_s:.1%} of the time"


def _busiest(start: MachineTimes, end: MachineTimes) -> str:
    """Return the busiest other processes in words. For example: python (4711) 48% of a processor"""
    if start.processes is None or end.processes is None:
        return ""
    cpu_s_of_others, _ = cpu_s_by_process(start.processes, end.processes, {os.getpid()})
    busiest = sorted(cpu_s_of_others, key=lambda pid: cpu_s_of_others[pid], reverse=True)[:MOST_NAMES]
    window_s = end.at_s - start.at_s
    words = []
    for pid in busiest:
        share = cpu_s_of_others[pid] / window_s
        if share >= 0.01:
            words.append(f"{end.processes.by_pid[pid].name} ({pid}) {share:.0%} of a processor")
    return ", ".join(words)


def wake_ups(measured: WakeUps) -> Item:
    """Return the item `wake-ups`: how late a process wakes up that sleeps until an order is due."""
    median_us = measured.percentile_us(50)
    p99_us = measured.percentile_us(99)
    most_us = measured.percentile_us(100)
    figures = {
        "sleeps": len(measured.late_us),
        "p50_us": median_us,
        "p99_us": p99_us,
        "max_us": most_us,
        "octaves": measured.octaves,
        "timer_slack_ns": measured.slack_ns,
    }
    observation = (
        f"late by {median_us:,.0f} us at p50, {p99_us:,.0f} us at p99; "
        f"the latest of {counted(len(measured.late_us), 'sleeps')} by {most_us:,.0f} us"
    )
    if measured.slack_ns is not None:
        observation += f"; timer slack {measured.slack_ns / 1e3:g} us, in components 1 ns"
    if p99_us <= GOOD_P99_US:
        return Item(name="wake-ups", verdict="good", found=observation, figures=figures)
    return Item(
        name="wake-ups",
        verdict="care" if p99_us <= MOST_P99_US else "no",
        found=observation,
        figures=figures,
        why=f"wake-ups are {p99_us:,.0f} us late at p99",
        advice="stop what else runs; if it stays so, let processors stay awake: sudo cpupower idle-set -D 0",
    )
