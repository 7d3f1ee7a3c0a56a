"""Five seconds of listening: how much others use the machine, and how late a sleeping process wakes up."""

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
from exchange_simulation.launching.record.noise import MOST_SHARE, MachineTimes, Noise, cpu_s_by_process, noise_between

SLEEP_S = 0.001
QUIET_SHARE = 0.02
"""Up to this share figures are those of a quiet machine; over MOST_SHARE a trial makes a run again."""
GOOD_P99_US, MOST_P99_US = 150.0, 1000.0
"""A wake-up that is this late at p99 is in every figure from due time."""
LEAST_BIN_US, BINS = 1.0, 15
"""The histogram has a bin for each octave, the last one without an end."""
MOST_NAMES = 3


@dataclass(frozen=True)
class WakeUps:
    """Lateness of each of many sleeps of a millisecond, in us."""

    late_us: list[float]
    slack_ns: int | None
    """The timer slack that the system gives a process; components set theirs to 1 ns."""

    def percentile_us(self, percent: float) -> float:
        ordered = sorted(self.late_us)
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]

    @property
    def octaves(self) -> list[int]:
        """How many sleeps ended up to 1, 2, 4, 8, ... us late."""
        bins = [0] * BINS
        for late in self.late_us:
            octave = math.ceil(math.log2(max(late, LEAST_BIN_US) / LEAST_BIN_US))
            bins[min(octave, BINS - 1)] += 1
        return bins


def listen(seconds: float, sleep: Callable[[float], None] = time.sleep) -> tuple[Item, Item]:
    """The items `quiet` and `wake-ups`, from the same seconds."""
    with exact_timers() as slack_ns:
        start = MachineTimes.now()
        late_us = list(_sleeps(start.at_s + seconds, sleep))
        end = MachineTimes.now()
    return quiet(start, end), wake_ups(WakeUps(late_us, slack_ns))


def _sleeps(until_s: float, sleep: Callable[[float], None]) -> Iterator[float]:
    """Yield how late each sleep ended, in us."""
    before_ns = time.monotonic_ns()
    while before_ns < until_s * 1e9:
        sleep(SLEEP_S)
        yield (time.monotonic_ns() - before_ns) / 1e3 - SLEEP_S * 1e6
        before_ns = time.monotonic_ns()


@contextlib.contextmanager
def exact_timers() -> Iterator[int | None]:
    """Let this thread wake as exactly as components do; gives the slack in ns that it had before."""
    before_ns = wake_on_time()
    try:
        yield before_ns
    finally:
        if before_ns is not None:
            wake_on_time(before_ns)


def quiet(start: MachineTimes, end: MachineTimes) -> Item:
    """Share of all processors that other processes took between the two readings."""
    noise = noise_between(start, end, {os.getpid()})
    facts = noise.beside({"this": {"cpu_s": 0.0}})
    share = facts["share_of_all_cpus"]
    if share is None:
        return Item(name="quiet", verdict="unknown", found="this system does not tell what others use", figures=facts)
    found = f"others take {share:.1%} of all processors" + _of_which(noise)
    busiest = _busiest(start, end)
    if share <= QUIET_SHARE:
        return Item(name="quiet", verdict="good", found=found, figures=facts)
    stolen = (noise.steal_s or 0.0) / (noise.window_s * noise.cores)
    advice = f"stop what is not needed: {busiest}" if busiest else ""
    if stolen > share / 2:
        advice = "other guests of this host take it: measure at another hour, or on a machine of its own"
    return Item(
        name="quiet",
        verdict="care" if share <= MOST_SHARE else "no",
        found=found,
        why=f"others take {share:.0%} of the processors",
        advice=advice,
        figures=facts,
    )


def _of_which(noise: Noise) -> str:
    """The end of a sentence on the noise.

    For example: , steal 0.0%; some task waits for a processor 12.0% of the time
    """
    steal = "" if noise.steal_s is None else f", steal {noise.steal_s / (noise.window_s * noise.cores):.1%}"
    if noise.cpu_pressure_s is None:
        return steal
    return f"{steal}; some task waits for a processor {noise.cpu_pressure_s / noise.window_s:.1%} of the time"


def _busiest(start: MachineTimes, end: MachineTimes) -> str:
    """The busiest other processes. For example: python (4711) 48% of a processor, bash (4712) 7% of a processor"""
    if start.processes is None or end.processes is None:
        return ""
    cpu_s_of_others, _ = cpu_s_by_process(start.processes, end.processes, {os.getpid()})
    busiest = sorted(cpu_s_of_others, key=lambda pid: -cpu_s_of_others[pid])[:MOST_NAMES]
    window_s = end.at_s - start.at_s
    words = []
    for pid in busiest:
        share = cpu_s_of_others[pid] / window_s
        if share >= 0.01:
            words.append(f"{end.processes.by_pid[pid].name} ({pid}) {share:.0%} of a processor")
    return ", ".join(words)


def wake_ups(measured: WakeUps) -> Item:
    """Whether a process that sleeps until an order is due wakes up in time."""
    median_us, p99_us, most_us = (measured.percentile_us(percent) for percent in (50, 99, 100))
    figures = {
        "sleeps": len(measured.late_us),
        "p50_us": median_us,
        "p99_us": p99_us,
        "max_us": most_us,
        "octaves": measured.octaves,
        "timer_slack_ns": measured.slack_ns,
    }
    found = (
        f"late by {median_us:,.0f} us at p50, {p99_us:,.0f} us at p99; "
        f"the latest of {counted(len(measured.late_us), 'sleeps')} by {most_us:,.0f} us"
    )
    if measured.slack_ns is not None:
        found += f"; timer slack {measured.slack_ns / 1e3:g} us, in components 1 ns"
    if p99_us <= GOOD_P99_US:
        return Item(name="wake-ups", verdict="good", found=found, figures=figures)
    return Item(
        name="wake-ups",
        verdict="care" if p99_us <= MOST_P99_US else "no",
        found=found,
        figures=figures,
        why=f"wake-ups are {p99_us:,.0f} us late at p99",
        advice="stop what else runs; if it stays so, let processors stay awake: sudo cpupower idle-set -D 0",
    )
