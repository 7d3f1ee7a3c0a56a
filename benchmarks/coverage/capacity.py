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
from math import exp, log, sqrt
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.comparison import BenchmarkRow
from exchange_simulation.experiments.capacity.curve import ProbeOutcome
from exchange_simulation.experiments.capacity.search import CapacitySearch, SearchSettings

SEARCHES = 60
"""For each of the benchmark's repeats."""
LOWEST_PER_S, HIGHEST_PER_S = 500.0, 300_000.0
"""Capacities are drawn between these."""
LEAST_PER_S, CEILING_PER_S = 10.0, 1_000_000.0
LOWEST_SHARE, HIGHEST_SHARE = 93.0, 97.0
CLIFF = 0.95
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


def line(load: float, floor: float) -> float:
    return log(floor + (1 - floor) * load)


def cliff(load: float, floor: float) -> float:
    """Flat up to 95 % of the capacity, then rising as steeply as it must."""
    return log(floor) if load < CLIFF else min(BLOCKED, log(floor) * (1 - log(load / CLIFF) / log(1 / CLIFF)))


def plateau(load: float, floor: float) -> float:
    """Flat, then rising to a second plateau, as where orders beyond the capacity are dropped."""
    return max(log(floor), min(log(3.0), 1.5 * log(load)))


def heavy_tails(random: np.random.Generator) -> float:
    """Student's t with 3 degrees of freedom."""
    return float(random.standard_t(3) / 3**0.5)


def one_sided(random: np.random.Generator) -> float:
    """An exponential distribution about its median: noise slows down more than it speeds up."""
    return float(random.exponential() - log(2))


@dataclass(frozen=True)
class System:
    """A simulated system: the shape of its curve, its floor as a share of the bound, and its noise."""

    name: str
    expected: Expected
    floor: float
    deviation: float
    draw: Callable[[np.random.Generator], float] = np.random.Generator.normal
    """The noise, in units of its deviation; its median is 0, so that half of all probes hold at the capacity."""

    def probe(self, capacity_per_s: float, random: np.random.Generator, rate_per_s: float) -> ProbeOutcome:
        noise = self.draw(random)
        ratio = self.expected(rate_per_s / capacity_per_s, self.floor) + self.deviation * noise
        return ProbeOutcome(rate_per_s, ratio <= 0, ratio)


SYSTEMS = (
    System("queue, noise 0.5, floor 0.55", queue, 0.55, 0.5),
    System("bend, noise 0.5, floor 0.55", bend, 0.55, 0.5),
    System("queue, heavy tails, floor 0.55", queue, 0.55, 0.5, heavy_tails),
    System("queue, noise 0.13, floor 0.2", queue, 0.2, 0.13),
)
"""The systems on which curve and grid were chosen."""
OTHERS = (
    System("line, noise 0.3, floor 0.3", line, 0.3, 0.3),
    System("cliff, noise 0.3, floor 0.4", cliff, 0.4, 0.3),
    System("plateau, noise 0.4, floor 0.5", plateau, 0.5, 0.4),
    System("queue, one-sided noise 0.4, floor 0.4", queue, 0.4, 0.4, one_sided),
)
"""Systems on which nothing was chosen. They are reported and not judged."""


@dataclass(frozen=True)
class Coverage(BenchmarkRow):
    """The share of intervals that contain the truth, in percent: neither too few nor too many."""

    searches: int = SEARCHES
    is_judged: bool = True

    @property
    def is_reached(self) -> bool | None:
        """False if the share is outside of the bounds by more than so many searches may be off by chance."""
        error = 2 * 100 * sqrt(0.05 * 0.95 / self.searches)
        inside = LOWEST_SHARE - error <= self.ours[0] <= HIGHEST_SHARE + error
        return inside if self.is_judged else None


class SearchResult(NamedTuple):
    """How one search ended, beside the truth."""

    is_covered: bool
    """True if the interval contains the capacity."""
    off: float
    """The logarithm of estimate / capacity, without its sign."""
    half_width: float
    probes: int


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    searches = SEARCHES * repeats
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for system in (*SYSTEMS, *OTHERS):
            found = list(processes.map(partial(search, system), range(searches), chunksize=10))
            covered = 100 * sum(each.is_covered for each in found) / searches
            is_judged = system in SYSTEMS
            aim = "reach 93..97" if is_judged else "chosen on other systems"
            what = f"capacity: {system.name}: {_beside(found)}; {aim}"
            yield Coverage(what, "", "% covered", [covered], [], searches=searches, is_judged=is_judged)


def _beside(found: list[SearchResult]) -> str:
    off, half_width = median(each.off for each in found), median(each.half_width for each in found)
    probes = sum(each.probes for each in found) / len(found)
    return f"{len(found)} searches of {probes:.0f} probes, {off:.1%} off, interval +-{half_width:.1%}"


def search(system: System, seed: int) -> SearchResult:
    """One search with the command's defaults, for a random capacity."""
    random = np.random.default_rng(seed)
    capacity = exp(random.uniform(log(LOWEST_PER_S), log(HIGHEST_PER_S)))
    made = CapacitySearch(partial(system.probe, capacity, random), lambda: CEILING_PER_S, LEAST_PER_S, SearchSettings())
    made.run()
    answer = made.answer()
    if answer is None:  # said to be beyond the reach, which it is not
        return SearchResult(False, float("inf"), float("inf"), len(made.outcomes))
    low, value, high = answer.quantiles([0.025, 0.5, 0.975])
    width = log(high / low) / 2
    return SearchResult(low <= capacity <= high, abs(log(value / capacity)), width, len(made.outcomes))
