"""A capacity from its settings to its record: the ceiling, a wide search, then searches about the edge."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from exchange.estimates import Estimate, median
from experiments.capacity.probing import Prober
from experiments.capacity.search import NARROW, WIDE, Edge, find_edge

LEAST_PER_S = 1.0
MOST_RUNS = 12
"""Of one search."""
NEAR_THE_CEILING = 0.8
"""A capacity above this share of what the generator itself can do says little of the transport."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """Where the edge is looked for, and how often."""

    start_per_s: float = 1_000.0
    precision: float = 0.05
    repeats: int = 5
    """Searches about the edge; each is one observation of it."""
    pause_s: float = 0.5
    """Between two runs, for what the one before left to drain."""
    seed: int = 1
    """Of the bootstrap."""


class Finding:
    """What has been found so far; an interrupt leaves it as it is."""

    def __init__(self, prober: Prober, search: Search) -> None:
        self.prober, self._search = prober, search
        self.ceiling_per_s: float | None = None
        self.edges: list[Edge] = []
        self.stopped: str | None = "interrupted"
        """Why it has not come to its end; None once it has."""

    def find(self) -> None:
        """The first search only says where to look: it came from far, the others from near."""
        search = self._search
        self.ceiling_per_s = self.prober.ceiling_per_s()
        edge = self._edge(search.start_per_s, WIDE)
        if edge.is_found:
            for _ in range(search.repeats):
                self.edges.append(self._edge(edge.middle, NARROW))
        else:
            self.edges.append(edge)
        self.stopped = None

    def _edge(self, start_per_s: float, step: float) -> Edge:
        assert self.ceiling_per_s is not None
        return find_edge(
            self.prober.holds, start_per_s, step, self._search.precision, LEAST_PER_S, self.ceiling_per_s, MOST_RUNS
        )

    @property
    def capacity(self) -> Estimate | None:
        """Orders a second; None where no search found both sides."""
        found = [edge.middle for edge in self.edges if edge.is_found]
        return median(found, self._search.seed) if found else None

    def flags(self) -> list[str]:
        """What a reader must know before the figure."""
        flags = []
        ceiling, capacity = self.ceiling_per_s or 0.0, self.capacity
        if self.stopped:
            flags.append(f"{self.stopped}: what was found until then")
        if capacity and capacity.value > NEAR_THE_CEILING * ceiling:
            flags.append(f"over {NEAR_THE_CEILING:.0%} of the generator's own ceiling, {ceiling:,.0f} orders/s")
        if any(edge.held >= ceiling > 0 for edge in self.edges):
            flags.append(f"held at the generator's own ceiling, {ceiling:,.0f} orders/s: the generator is the limit")
        if any(edge.failed <= LEAST_PER_S for edge in self.edges):
            flags.append(f"not held even at {LEAST_PER_S:g} order/s")
        return flags

    def as_dict(self) -> dict[str, Any]:
        capacity = self.capacity
        return {
            "status": "partial" if self.stopped else "complete",
            "flags": self.flags(),
            "capacity_orders_per_s": None if capacity is None else asdict(capacity),
            "ceiling_orders_per_s": self.ceiling_per_s,
            "search": asdict(self._search),
            "searches": [{"held": edge.held or None, "failed": edge.failed if edge.failed < float("inf") else None}
                         for edge in self.edges],
            "probes": [probe.as_dict() for probe in self.prober.probes],
        }  # fmt: skip
