"""The search for a capacity, on a simulated queue whose capacity is known."""

from __future__ import annotations

from itertools import count
from random import Random

import pytest

from experiments.capacity.search import NARROW, WIDE, Edge, Holds, find_edge

PRECISION = 0.05
MOST_PER_S = 4e6


def noisy_queue(capacity_per_s: float, noise: float, random: Random) -> Holds:
    """Its p99 grows as a queue's does, with lognormal noise from run to run; the objective is its p99 at capacity."""
    full_per_s = 1.1 * capacity_per_s

    def p99(rate_per_s: float) -> float:
        return 1 / (1 - rate_per_s / full_per_s)

    return lambda rate: rate < full_per_s and p99(rate) * random.lognormvariate(0, noise) <= p99(capacity_per_s)


def search(holds: Holds, start: float = 1000.0, step: float = WIDE, runs: int = 12) -> Edge:
    return find_edge(holds, start, step, PRECISION, least=1.0, most=MOST_PER_S, runs=runs)


def test_a_noisy_queues_capacity_is_found_within_5_percent_in_12_runs() -> None:
    random = Random(1)
    capacities = [10 ** random.uniform(2.3, 6.3) for _ in range(500)]
    edges = [search(noisy_queue(capacity, 0.1, random)) for capacity in capacities]
    off = [abs(edge.middle / capacity - 1) for edge, capacity in zip(edges, capacities, strict=True)]
    assert sum(each > 0.05 for each in off) <= 5


def test_searches_from_near_need_few_runs_and_agree_with_the_capacity_on_average() -> None:
    random, made = Random(2), count()
    queue = noisy_queue(50_000.0, 0.1, random)

    def holds(rate: float) -> bool:
        next(made)
        return queue(rate)

    middles = sorted(search(holds, start=48_000.0, step=NARROW).middle for _ in range(200))
    assert middles[100] == pytest.approx(50_000, rel=0.02)
    assert next(made) < 200 * 6


def test_an_edge_is_bracketed_to_the_precision_that_was_asked_for() -> None:
    edge = search(lambda rate: rate <= 61_234.0)
    assert edge.highest_held <= 61_234.0 < edge.lowest_failed
    assert edge.lowest_failed / edge.highest_held <= 1 + PRECISION + 1e-4


@pytest.mark.parametrize(("holds", "edge"), [(True, Edge(MOST_PER_S, float("inf"))), (False, Edge(0.0, 1.0))])
def test_a_search_ends_at_the_ends_of_its_range(holds: bool, edge: Edge) -> None:
    assert search(lambda rate: holds) == edge
    assert not edge.is_found


def test_a_search_makes_no_more_runs_than_it_may() -> None:
    asked: list[float] = []
    search(lambda rate: bool(asked.append(rate)), start=1e6, runs=3)
    assert len(asked) == 3
