"""How long a benchmark will take on a quiet machine, where no measurement is made again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from exchange_simulation.launching.launch.brokers import broker_start_s
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell, least_duration_s
from exchange_simulation.messaging.point import Settings
from exchange_simulation.messaging.setup import BenchmarkPlan, check_cells, plan_of

ROLE_START_S = 0.01
"""Seconds that it takes to start and end one of many roles without a broker."""
ROLE_START_AT_BROKER_S = 0.02
"""The same for a role that connects to a broker."""
MEASUREMENT_START_S = 0.4
"""Seconds that a measurement takes beside its messages and the start of its roles."""


def expected_s(benchmark: BenchmarkDefinition, settings: Settings) -> float:
    """Return about how long a benchmark takes. UserError if it cannot be measured here."""
    plan = plan_of(benchmark, settings)
    role_counts = check_cells(benchmark, plan.cells)
    return expected_s_of_plan(benchmark, plan, role_counts, settings["repeats"])


def expected_s_of_plan(
    benchmark: BenchmarkDefinition, plan: BenchmarkPlan, role_counts: Sequence[int], repeats: int
) -> float:
    """Return about how long a plan takes; `role_counts` has the number of roles of each cell.

    The duration of a cell with a rate, or with a sample, is known. Others take as long as their messages usually do.
    """
    once_s = 0.0
    for cell, role_count in zip(plan.cells, role_counts, strict=True):
        role_start_s = ROLE_START_AT_BROKER_S if cell.has_broker else ROLE_START_S
        messages_s = least_duration_s(cell) or benchmark.flood_s(cell)
        once_s += MEASUREMENT_START_S + role_count * role_start_s + messages_s
    return _brokers_start_s(plan.cells) + repeats * once_s


def _brokers_start_s(cells: Iterable[Cell]) -> float:
    """Return how long the brokers take to start that the cells share: some in each network, over each transport."""
    most_brokers: dict[tuple[str, str], int] = {}
    for cell in cells:
        place = (cell.network, cell.transport)
        most_brokers[place] = max(cell.brokers, most_brokers.get(place, 0))
    return sum(number * broker_start_s(transport) for (_, transport), number in most_brokers.items())
