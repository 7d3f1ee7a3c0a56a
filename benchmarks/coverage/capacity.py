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
"""The number of searches of a system, for each repeat of the benchmark."""
LOWEST_CAPACITY_PER_S = 500.0
"""Simulated capacities are drawn from here to HIGHEST_CAPACITY_PER_S."""
HIGHEST_CAPACITY_PER_S = 300_000.0
SEARCH_LOW_PER_S = 10.0
"""The lowest rate that a search may try."""
SEARCH_HIGH_PER_S = 1_000_000.0
"""The highest rate that a search may try."""
LOWEST_SHARE = 93.0
"""The required share of intervals that contain the capacity, in percent: from here to HIGHEST_SHARE."""
HIGHEST_SHARE = 97.0
CLIFF = 0.95
"""The load at which the curve of `cliff` begins to rise."""
BLOCKED = 9.0
"""The logarithm of figure / bound if a queue only grows."""

Expected = Callable[[float, float], float]
"""The logarithm of figure / bound, without noise, by rate / capacity and floor."""


def queue(load: float, floor: float) -> float:
    """A queue with one server: its time is 1 / (1 - utilisation)."""
    utilisation = load * (1 - floor)
    if utilisation >= 1:
        return BLOCKED
    return min(BLOCKED, log(floor / (1 - utilisation)))


def bend(load: float, floor: float) -> float:
    """Flat, then rising with the third power of the rate."""
    return max(log(floor), 3 * log(load))


def line(load: float, floor: float) -> float:
    return log(floor + (1 - floor) * load)


def cliff(load: float, floor: float) -> float:
    """Flat up to CLIFF of the capacity, then rising steeply to 0 at the capacity, and beyond."""
    if load < CLIFF:
        return log(floor)
    steps = log(load / CLIFF) / log(1 / CLIFF)  # 0 at the cliff, 1 at the capacity
    return min(BLOCKED, log(floor) * (1 - steps))


def plateau(load: float, floor: float) -> float:
    """Flat, then rising to a second plateau, as where orders beyond the capacity are dropped."""
    return max(log(floor), min(log(3.0), 1.5 * log(load)))


def normal(random: np.random.Generator) -> float:
    return float(random.normal())


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
    draw: Callable[[np.random.Generator], float] = normal
    """Draws noise in units of its deviation. Its median is 0, so half of all probes hold at the capacity."""

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
"""The curve and the grid of the search were tuned on these systems."""
UNTUNED_SYSTEMS = (
    System("line, noise 0.3, floor 0.3", line, 0.3, 0.3),
    System("cliff, noise 0.3, floor 0.4", cliff, 0.4, 0.3),
    System("plateau, noise 0.4, floor 0.5", plateau, 0.5, 0.4),
    System("queue, one-sided noise 0.4, floor 0.4", queue, 0.4, 0.4, one_sided),
)
"""Systems that were not used for tuning. Their coverage is reported and not judged."""


@dataclass(frozen=True)
class Coverage(BenchmarkRow):
    """The share of intervals that contain the truth, in percent: neither too few nor too many."""

    searches: int = SEARCHES
    is_judged: bool = True

    @property
    def is_reached(self) -> bool | None:
        """True if the share is within its bounds, give or take two standard errors; None if not judged."""
        if not self.is_judged:
            return None
        standard_error = 100 * sqrt(0.05 * 0.95 / self.searches)
        (share,) = self.ours
        return LOWEST_SHARE - 2 * standard_error <= share <= HIGHEST_SHARE + 2 * standard_error


class SearchResult(NamedTuple):
    """How one search ended, beside the truth."""

    is_covered: bool
    """True if the interval contains the capacity."""
    log_error: float
    """The logarithm of estimate / capacity, without its sign."""
    half_width: float
    """Half the width of the interval, in the logarithm of the rate."""
    probes: int


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    searches = SEARCHES * repeats
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for system in (*SYSTEMS, *UNTUNED_SYSTEMS):
            results = list(processes.map(partial(search, system), range(searches), chunksize=10))
            covered = 100 * sum(result.is_covered for result in results) / searches
            is_judged = system in SYSTEMS
            note = f"reach {LOWEST_SHARE:.0f}..{HIGHEST_SHARE:.0f}" if is_judged else "not used for tuning"
            title = f"capacity: {system.name}: {_search_summary(results)}; {note}"
            yield Coverage(
                title=title,
                against="",
                unit="% covered",
                ours=[covered],
                reference=[],
                searches=searches,
                is_judged=is_judged,
            )


def _search_summary(results: list[SearchResult]) -> str:
    log_error = median(result.log_error for result in results)
    half_width = median(result.half_width for result in results)
    probes = sum(result.probes for result in results) / len(results)
    return f"{len(results)} searches of {probes:.0f} probes, {log_error:.1%} off, interval +-{half_width:.1%}"


def search(system: System, seed: int) -> SearchResult:
    """One search with the command's defaults, for a random capacity."""
    random = np.random.default_rng(seed)
    capacity = exp(random.uniform(log(LOWEST_CAPACITY_PER_S), log(HIGHEST_CAPACITY_PER_S)))
    probe = partial(system.probe, capacity, random)
    capacity_search = CapacitySearch(probe, lambda: SEARCH_HIGH_PER_S, SEARCH_LOW_PER_S, SearchSettings())
    capacity_search.run()
    answer = capacity_search.answer()
    if answer is None:
        # The search reports that the capacity is out of range. That is wrong, so the capacity counts as not covered.
        return SearchResult(
            is_covered=False,
            log_error=float("inf"),
            half_width=float("inf"),
            probes=len(capacity_search.outcomes),
        )
    low, value, high = answer.quantiles([0.025, 0.5, 0.975])
    return SearchResult(
        is_covered=low <= capacity <= high,
        log_error=abs(log(value / capacity)),
        half_width=log(high / low) / 2,
        probes=len(capacity_search.outcomes),
    )
