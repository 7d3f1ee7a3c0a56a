"""Where a noisy yes turns into a no: a bracket, then bisection, on the logarithm of the rate. Knows no exchange."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt

Holds = Callable[[float], bool]
"""Whether a rate holds; each call is a run, and near the edge two calls may differ."""

WIDE, NARROW = 4.0, 1.25
"""The steps in which a bracket grows: from anywhere, and from where an earlier search ended."""


@dataclass(frozen=True)
class Edge:
    """It held at `held`, and did not at `failed`; 0 and infinity where no such rate was found."""

    held: float
    failed: float

    @property
    def is_found(self) -> bool:
        return self.held > 0 and self.failed != float("inf")

    @property
    def middle(self) -> float:
        """The geometric one: at most half the bracket's width from the edge, whichever side that is on."""
        return sqrt(self.held * self.failed)

    def is_within(self, precision: float) -> bool:
        return self.is_found and log(self.failed / self.held) <= log(1 + precision) * 1.0001


def find_edge(
    holds: Holds, start: float, step: float, precision: float, least: float, most: float, runs: int
) -> Edge:  # fmt: skip
    """From `start`, within `least` and `most`, in at most so many runs; the bracket that they left."""
    edge = Edge(0.0, float("inf"))
    rate = min(max(start, least), most)
    for _ in range(runs):
        edge = Edge(rate, edge.failed) if holds(rate) else Edge(edge.held, rate)
        if edge.is_within(precision) or edge.held >= most or edge.failed <= least:
            break
        rate = min(max(_next(edge, step), least), most)
    return edge


def _next(edge: Edge, step: float) -> float:
    if edge.held == 0:
        return edge.failed / step
    return edge.held * step if edge.failed == float("inf") else edge.middle
