"""The search for a capacity: the edge between rates that hold and rates that do not. Knows no exchange.

A search brackets the edge, then bisects the bracket on the logarithm of the rate. The first search starts from
anywhere; further ones start where it ended, and each is one observation of the edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import log, sqrt
from typing import Any

from exchange.estimates import Estimate, median

Holds = Callable[[float], bool]
"""A function that is true if a rate holds. Each call is a run; near the edge two calls may differ."""

WIDE, NARROW = 4.0, 1.25
"""Growth of a bracket: from anywhere, and from the end of an earlier search."""
LEAST_PER_S = 1.0
MOST_RUNS = 12
"""The most runs of one search."""
NEAR_THE_CEILING = 0.8
"""A capacity above this share of the generator's own ceiling says little about the transport."""


@dataclass(frozen=True)
class Edge:
    """The highest rate that held, 0 if none did; and the lowest one that failed, infinity if none did."""

    highest_held: float
    lowest_failed: float

    def as_dict(self) -> dict[str, float | None]:
        """Both ends, None for one that was not found."""
        failed = None if self.lowest_failed == float("inf") else self.lowest_failed
        return {"held": self.highest_held or None, "failed": failed}

    @property
    def is_found(self) -> bool:
        return self.highest_held > 0 and self.lowest_failed != float("inf")

    @property
    def middle(self) -> float:
        """The geometric mean of the bracket, at most half its width from the true edge."""
        return sqrt(self.highest_held * self.lowest_failed)

    def is_within(self, precision: float) -> bool:
        return self.is_found and log(self.lowest_failed / self.highest_held) <= log(1 + precision) * 1.0001


def find_edge(
    holds: Holds, start: float, step: float, precision: float, least: float, most: float, runs: int
) -> Edge:  # fmt: skip
    """Search from `start`, within `least` and `most`, in at most `runs` runs. The last bracket."""
    edge = Edge(0.0, float("inf"))
    rate = min(max(start, least), most)
    for _ in range(runs):
        edge = Edge(rate, edge.lowest_failed) if holds(rate) else Edge(edge.highest_held, rate)
        if edge.is_within(precision) or edge.highest_held >= most or edge.lowest_failed <= least:
            break
        rate = min(max(_next(edge, step), least), most)
    return edge


def _next(edge: Edge, step: float) -> float:
    if edge.highest_held == 0:
        return edge.lowest_failed / step
    return edge.highest_held * step if edge.lowest_failed == float("inf") else edge.middle


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Start, precision and number of the searches."""

    start_per_s: float = 1_000.0
    precision: float = 0.05
    repeats: int = 5
    """The number of searches after the first one."""
    pause_s: float = 0.5
    """Time between two runs for the previous one to drain."""
    seed: int = 1
    """The seed of the bootstrap."""


class CapacitySearch:
    """The edges found so far; an interrupt leaves them as they are."""

    def __init__(self, holds: Holds, measure_ceiling_per_s: Callable[[], float], settings: SearchSettings) -> None:
        self._holds, self._measure_ceiling_per_s, self._settings = holds, measure_ceiling_per_s, settings
        self.ceiling_per_s = 0.0
        """Orders/s that the generator can reach without messaging; 0 before it is measured."""
        self.edges: list[Edge] = []
        self.stopped: str | None = "interrupted"
        """The reason why the search is incomplete, None if it is complete."""

    def run(self) -> None:
        """Measure the ceiling and make all searches; the first one's edge only starts the others."""
        settings = self._settings
        self.ceiling_per_s = self._measure_ceiling_per_s()
        first = self._edge(settings.start_per_s, WIDE)
        if first.is_found:
            for _ in range(settings.repeats):
                self.edges.append(self._edge(first.middle, NARROW))
        else:
            self.edges.append(first)
        self.stopped = None

    def _edge(self, start_per_s: float, step: float) -> Edge:
        precision = self._settings.precision
        return find_edge(self._holds, start_per_s, step, precision, LEAST_PER_S, self.ceiling_per_s, MOST_RUNS)

    @property
    def capacity(self) -> Estimate | None:
        """Orders/s; None if no search found both sides of the edge."""
        found = [edge.middle for edge in self.edges if edge.is_found]
        return median(found, self._settings.seed) if found else None

    def flags(self) -> list[str]:
        """Sentences that a reader must know before the figure."""
        flags = []
        ceiling, capacity = self.ceiling_per_s, self.capacity
        if self.stopped:
            flags.append(f"{self.stopped}: what was found until then")
        if capacity and capacity.value > NEAR_THE_CEILING * ceiling:
            flags.append(f"over {NEAR_THE_CEILING:.0%} of the generator's own ceiling, {ceiling:,.0f} orders/s")
        if any(edge.highest_held >= ceiling > 0 for edge in self.edges):
            flags.append(f"held at the generator's own ceiling, {ceiling:,.0f} orders/s: the generator is the limit")
        if any(edge.lowest_failed <= LEAST_PER_S for edge in self.edges):
            flags.append(f"not held even at {LEAST_PER_S:g} order/s")
        return flags

    def as_dict(self) -> dict[str, Any]:
        """capacity.json's part about the search."""
        capacity = self.capacity
        return {
            "status": "partial" if self.stopped else "complete",
            "flags": self.flags(),
            "capacity_orders_per_s": None if capacity is None else asdict(capacity),
            "ceiling_orders_per_s": self.ceiling_per_s or None,
            "search": asdict(self._settings),
            "searches": [edge.as_dict() for edge in self.edges],
        }  # fmt: skip
