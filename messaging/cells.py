"""Which cells a benchmark has: its points over each transport, but for those that a transport has nothing for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from messaging.benchmark import Asked, Benchmark, Cell
from runs.errors import UserError
from transports.pattern import Pattern


@dataclass(frozen=True)
class Plan:
    """The cells to be measured, and of those left out why, each reason once."""

    cells: Sequence[Cell]
    left_out: Sequence[str]

    def patterns(self, benchmark: Benchmark, transport: str) -> list[Pattern]:
        """Each once, of a transport's links, besides pairs."""
        own = [cell for cell in self.cells if cell.transport == transport]
        return list(dict.fromkeys(pattern for cell in own for pattern in benchmark.patterns(cell)))


def plan_of(benchmark: Benchmark, asked: Asked) -> Plan:
    """UserError where nothing of what was asked for can be measured over one of the transports."""
    points = benchmark.points(asked)
    plans = [_over(benchmark, [Cell(transport, point, asked) for point in points]) for transport in asked["transport"]]
    by_point = [cell for point in points for plan in plans for cell in plan.cells if cell.point is point]
    return Plan(by_point, [reason for plan in plans for reason in plan.left_out])


def _over(benchmark: Benchmark, cells: Sequence[Cell]) -> Plan:
    """Of one transport."""
    lacking = [benchmark.lacking(cell) for cell in cells]
    measured = [cell for cell, reason in zip(cells, lacking, strict=True) if reason is None]
    reasons = list(dict.fromkeys(f"{cell.transport}: {why}" for cell, why in zip(cells, lacking, strict=True) if why))
    if not measured:
        raise UserError("; ".join(reasons))
    return Plan(measured, reasons)
