"""The interval of `exchange capacity`: how often it contains the capacity of a simulated system.

    search  ── rate ──▶  simulated system: log(figure / bound) rises with the rate, and is 0 at the capacity
            ◀─ ratio ─   plus noise from probe to probe

The noise is what was measured between runs on a busy machine: a deviation of 0.5 in the logarithm of p99, with a floor
at 0.55 of the bound, so that an idle system fails one probe in nine; and less of both, as on a quiet machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import exp, log
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.comparison import Row
from experiments.capacity.curve import Outcome
from experiments.capacity.search import CapacitySearch, SearchSettings

SEARCHES = 60
"""For each of the benchmark's repeats."""
LOWEST_PER_S, HIGHEST_PER_S = 500.0, 300_000.0
"""Capacities are drawn between these."""
LEAST_PER_S, CEILING_PER_S = 10.0, 1_000_000.0
LOWEST_SHARE, HIGHEST_SHARE = 93.0, 97.0
BLOCKED = 9.0
"""The logarithm of the ratio where a queue only grows."""

Expected = Callable[[float, float], float]
"""The logarithm of figure / bound, without noise, by rate / capacity and floor."""


def queue(load: float, floor: float) -> float:
    """A queue with one server: its time is 1 / (1 - utilisation)."""
    utilisation = load * (1 - floor)
    return BLOCKED if utilisation >= 1 else min(BLOCKED, log(floor / (1 - utilisation)))


def bend(load: float, floor: float) -> float:
    """Flat, then rising with the third power of the rate."""
    return max(log(floor), 3 * log(load))


@dataclass(frozen=True)
class System:
    """A simulated system: the shape of its curve, its floor as a share of the bound, and its noise."""

    name: str
    expected: Expected
    floor: float
    deviation: float
    heavy_tails: bool = False

    def probe(self, capacity_per_s: float, random: np.random.Generator, rate_per_s: float) -> Outcome:
        noise = random.standard_t(3) / 3**0.5 if self.heavy_tails else random.normal()
        ratio = self.expected(rate_per_s / capacity_per_s, self.floor) + self.deviation * noise
        return Outcome(rate_per_s, ratio <= 0, ratio)


SYSTEMS = (
    System("queue, noise 0.5, floor 0.55", queue, 0.55, 0.5),
    System("bend, noise 0.5, floor 0.55", bend, 0.55, 0.5),
    System("queue, heavy tails, floor 0.55", queue, 0.55, 0.5, heavy_tails=True),
    System("queue, noise 0.13, floor 0.2", queue, 0.2, 0.13),
)


@dataclass(frozen=True)
class Coverage(Row):
    """The share of intervals that contain the truth, in percent: neither too few nor too many."""

    @property
    def is_reached(self) -> bool:
        return LOWEST_SHARE <= self.ours[0] <= HIGHEST_SHARE


class Found(NamedTuple):
    is_covered: bool
    off: float
    """The logarithm of estimate / capacity, without its sign."""
    half_width: float
    probes: int


def rows(repeats: int) -> Iterator[Row]:
    searches = SEARCHES * repeats
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for system in SYSTEMS:
            found = list(processes.map(partial(search, system), range(searches), chunksize=10))
            covered = 100 * sum(each.is_covered for each in found) / searches
            yield Coverage(f"capacity: {system.name}", _beside(found), "% covered", [covered], [])


def _beside(found: list[Found]) -> str:
    off, half_width = median(each.off for each in found), median(each.half_width for each in found)
    probes = sum(each.probes for each in found) / len(found)
    return f"{len(found)} searches of {probes:.0f} probes, {off:.1%} off, interval +-{half_width:.1%}; reach 93..97"


def search(system: System, seed: int) -> Found:
    """One search with the command's defaults, for a random capacity."""
    random = np.random.default_rng(seed)
    capacity = exp(random.uniform(log(LOWEST_PER_S), log(HIGHEST_PER_S)))
    made = CapacitySearch(partial(system.probe, capacity, random), lambda: CEILING_PER_S, LEAST_PER_S, SearchSettings())
    made.run()
    answer = made.answer()
    if answer is None:  # said to be beyond the reach, which it is not
        return Found(False, float("inf"), float("inf"), len(made.outcomes))
    low, value, high = answer.quantiles([0.025, 0.5, 0.975])
    width = log(high / low) / 2
    return Found(low <= capacity <= high, abs(log(value / capacity)), width, len(made.outcomes))
