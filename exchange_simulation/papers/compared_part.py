"""A part of a paper that compares the exchange over two transports, one of which another paper is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from exchange.json_records import Record
from exchange.unique import unique
from exchange_simulation.experiments.comparison_arms import comparison_arms
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.papers.beside_ours import BesideOurs
from exchange_simulation.papers.extent import Extent
from exchange_simulation.papers.paper import TrialPart
from exchange_simulation.reports.drawing.figures import Drawing


@dataclass(frozen=True, kw_only=True)
class ComparedPart(TrialPart):
    """The exchange over several transports at one rate, on loopback, by the paper's rule."""

    transports: Sequence[str]
    orders_per_s: float
    full_seconds: float
    quick_seconds: float
    policy: str

    def command(self, extent: Extent) -> str:
        return (
            f"exchange compare --transports {','.join(self._transports(extent))} --rates {self.orders_per_s:g} "
            f"--policy {self.policy} --seconds {self._seconds(extent):g} --repeats {self.repeats_of(extent)}"
        )

    def _transports(self, extent: Extent) -> list[str]:
        return unique([*self.transports, *extent.transports])

    def _seconds(self, extent: Extent) -> float:
        return self.quick_seconds if extent.quick else self.full_seconds

    def plan(self, extent: Extent) -> TrialPlan:
        arms = comparison_arms(
            self._transports(extent), [self.orders_per_s], self._seconds(extent), {"policy": self.policy}
        )
        return TrialPlan(arms=arms, repeats=self.repeats_of(extent), seed=1).with_redo(True)

    def drawings(self, record: Record) -> list[Drawing]:  # noqa: ARG002
        """The paper draws none of it."""
        return []

    def write_figures(self, folder: Path, record: Record) -> None:
        """The paper draws none of it."""

    def values(self, record: Record) -> list[BesideOurs]:  # noqa: ARG002
        """The paper prints none of it."""
        return []

    def remarks(self, record: Record) -> list[str]:
        """How far the transports are apart in completion time and in tail."""
        sentences = []
        for verdict in record["verdicts"]:
            title = record["metrics"][verdict["metric"]]["title"]
            sentences.append(f"{title}, {verdict['block']}: {verdict['sentence']}")
        return sentences
