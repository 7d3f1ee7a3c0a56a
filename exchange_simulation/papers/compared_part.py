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
from exchange_simulation.reports.formats.estimates import median_text, middle_half

FIGURES = ("handed_over_mean_us", "due_p50_us", "due_p99_us", "cpu_s_per_million")
"""What the page says of each transport: the figure of the paper's claim, then those of a comparison's verdicts."""


@dataclass(frozen=True, kw_only=True)
class ComparedPart(TrialPart):
    """The exchange over several transports at one rate, on loopback, by the paper's rule."""

    transports: Sequence[str]
    orders_per_s: float
    full_seconds: float
    quick_seconds: float
    policy: str

    @property
    def why_loopback_alone(self) -> str:
        return "what is compared is the transports"

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
        """Our figures of each transport, then how far the transports are apart."""
        sentences = [_figures_in_words(record, arm) for arm in record["arms"]]
        if record["repeats"] > 1:
            sentences.append("in brackets: the middle half of the repeats")
        for verdict in record["verdicts"]:
            title = record["metrics"][verdict["metric"]]["title"]
            sentences.append(f"{title}, {verdict['block']}: {verdict['sentence']}")
        return sentences


def _figures_in_words(record: Record, arm: Record) -> str:
    """Our figures over one transport, each with the middle half of its repeats.

    For example: ours over amqp, at 8,000 orders/s: completion mean from handing over 517 us (480..560), ...
    """
    clauses = []
    for name in FIGURES:
        if name in arm["metrics"]:
            metric = record["metrics"][name]
            estimate = arm["metrics"][name]
            clauses.append(
                f"{metric['title']} {median_text(estimate)} {metric['unit']} {middle_half(estimate)}".rstrip()
            )
    return f"ours over {arm['contender']}, {arm['block']}: {', '.join(clauses)}"
