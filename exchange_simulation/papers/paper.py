"""A paper: the parts that measure it, in its own order, and its claims. A part is a command that a user could type."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exchange.json_records import Record
from exchange.record_kinds import ComparisonRecord
from exchange.unique import unique
from exchange_simulation.experiments.comparison_arms import LOCAL, nagle_arms
from exchange_simulation.experiments.trials.plan import TrialPlan, plan_as_dict, read_plan
from exchange_simulation.experiments.trials.plan import expected_s as expected_s_of_trial
from exchange_simulation.experiments.trials.results import FILE as COMPARISON_FILE
from exchange_simulation.experiments.trials.study import NAGLE
from exchange_simulation.experiments.trials.trial import new_trial, resumed_trial
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.record.disk import disk_in_words
from exchange_simulation.launching.record.reading import Unusable, read_record
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.earlier import can_go_on
from exchange_simulation.messaging.expected_time import expected_s
from exchange_simulation.messaging.network_sentences import network_sentences
from exchange_simulation.messaging.options import settings_from_words
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.plots import figures_of
from exchange_simulation.messaging.point import Settings
from exchange_simulation.messaging.report import PAGE as BENCH_PAGE
from exchange_simulation.messaging.report import published_beside_ours, short
from exchange_simulation.messaging.results import read as read_benchmark
from exchange_simulation.messaging.running import measured_benchmark, resumed_benchmark
from exchange_simulation.papers.beside_ours import NOT_PRINTED, BesideOurs
from exchange_simulation.papers.claims import Claim
from exchange_simulation.papers.extent import Extent
from exchange_simulation.papers.table_1 import table_1_beside_ours
from exchange_simulation.reports.comparison.paper_figures import paper_figures, published, transports
from exchange_simulation.reports.drawing.figures import Drawing, drawings, write_figures
from exchange_simulation.reports.formats.estimates import median_text

REPEATS = 6
"""How often the cells of a paper are measured if a user does not say how often. Fewer give no verdict on a claim."""


@dataclass(frozen=True)
class PaperItem:
    """A figure, table or experiment of a paper."""

    name: str
    """The paper's name for it, as "figure 4a"."""
    title: str
    differences: str = ""
    """How our measurement differs from the paper's."""
    quick: str = ""
    """What `--quick` leaves out of it; empty if nothing."""
    is_on_loopback_if_quick: bool = False
    """`--quick` measures it on loopback alone, and the full form on several networks."""

    def left_out(self, extent: Extent) -> str:
        """Return what a measurement of this extent leaves out of it; empty if nothing."""
        if not extent.quick:
            return ""
        if self.is_on_loopback_if_quick and not extent.networks:
            return "loopback alone"
        return self.quick


@dataclass(frozen=True)
class Absent:
    """An item that nothing here measures."""

    item: PaperItem
    reason: str


@dataclass(frozen=True, kw_only=True)
class PaperPart(ABC):
    """A command that makes some items of a paper."""

    name: str
    """The folder of its results."""
    items: Sequence[PaperItem]
    repeats: int = REPEATS
    """How often each cell is measured if a user does not say how often."""

    def repeats_of(self, extent: Extent) -> int:
        """Return how often each cell is measured."""
        return self.repeats if extent.repeats is None else extent.repeats

    @property
    def why_no_repeats(self) -> str:
        """Why this part has no repeats, whatever a user says; empty if it has some."""
        return ""

    @property
    def why_loopback_alone(self) -> str:
        """Why this part is measured on loopback, whatever networks a user names; empty if it is measured on these."""
        return ""

    @abstractmethod
    def command(self, extent: Extent) -> str:
        """Return the command that a user would type."""

    @abstractmethod
    def expected_s(self, extent: Extent) -> float:
        """Return about how long the command takes on a quiet machine. UserError if it cannot be measured here."""

    @abstractmethod
    def measure(self, parent: Path, extent: Extent) -> Record:
        """Measure in a new folder of `parent`. ClickException if nothing could be measured."""

    @abstractmethod
    def can_go_on(self, folder: Path, extent: Extent) -> bool:
        """Return whether `folder` has an interrupted measurement by the same command."""

    @abstractmethod
    def go_on(self, folder: Path, extent: Extent) -> Record:
        """Measure what the interrupted measurement in `folder` lacks. ClickException if nothing could be measured."""

    @abstractmethod
    def read(self, folder: Path) -> Record:
        """Read the part's record. Unusable if there is none."""

    @property
    @abstractmethod
    def page(self) -> str:
        """The file of the part's own page."""

    @abstractmethod
    def drawings(self, record: Record) -> list[Drawing]:
        """Draw the paper's figures from the part's record."""

    @abstractmethod
    def write_figures(self, folder: Path, record: Record) -> None:
        """Write all figures of the part into `folder`, as SVG, PNG and CSV."""

    @abstractmethod
    def values(self, record: Record) -> list[BesideOurs]:
        """Return what the paper prints, beside ours."""

    def remarks(self, record: Record) -> list[str]:
        """Sentences below the figures: how far two transports are apart at one point, and what the disk is."""
        verdicts = record.get("verdicts", ())
        sentences = [str(verdict["sentence"]) for verdict in verdicts] if len(verdicts) == 1 else []
        if record.get("disk"):
            sentences.append(disk_in_words(record["disk"]))
        return sentences


@dataclass(frozen=True, kw_only=True)
class BenchPart(PaperPart):
    """A messaging benchmark."""

    benchmark: str
    full: str
    """The options of the paper's own extent."""
    quick: str
    """The options of `--quick`."""
    published: Sequence[Published] | None = None
    """What the paper printed, for a benchmark that another paper describes; None for the benchmark's own values."""
    has_papers_lines: bool = False
    """The pictures have the paper's lines, although `published` names its values."""
    drawn: Sequence[str] | None = None
    """Words of the titles of the pictures that the page has; None for all that the paper numbers, if it numbers any."""
    not_in_print: Mapping[str, str] = field(default_factory=dict)
    """Figures of ours that the paper does not print and no picture of it has: the unit, by figure."""

    def command(self, extent: Extent) -> str:
        return f"exchange bench {self.benchmark} {shlex.join(self._options(extent))}"

    def _options(self, extent: Extent) -> list[str]:
        """The words after the benchmark's name."""
        words = shlex.split(self.quick if extent.quick else self.full)
        if extent.transports:
            place = words.index("--transport") + 1
            words[place] = ",".join(unique([*words[place].split(","), *extent.transports]))
        if extent.networks:
            if "--network" in words:
                place = words.index("--network")
                del words[place : place + 2]
            words += ["--network", ",".join(extent.networks)]
        return [*words, "--repeats", str(self.repeats_of(extent))]

    def expected_s(self, extent: Extent) -> float:
        return expected_s(*self._benchmark(extent))

    def measure(self, parent: Path, extent: Extent) -> Record:
        benchmark, settings = self._benchmark(extent)
        return measured_benchmark(benchmark, settings, str(parent), self.name).record

    def _benchmark(self, extent: Extent) -> tuple[BenchmarkDefinition, Settings]:
        benchmark = benchmark_of(self.benchmark)
        settings, _ = settings_from_words(benchmark, self._options(extent))
        return benchmark, settings

    def can_go_on(self, folder: Path, extent: Extent) -> bool:
        benchmark, settings = self._benchmark(extent)
        try:
            return can_go_on(self.read(folder), benchmark, settings)
        except Unusable:
            return False

    def go_on(self, folder: Path, extent: Extent) -> Record:
        benchmark, settings = self._benchmark(extent)
        return resumed_benchmark(benchmark, settings, folder).record

    def read(self, folder: Path) -> Record:
        return read_benchmark(folder)

    @property
    def page(self) -> str:
        return BENCH_PAGE

    def drawings(self, record: Record) -> list[Drawing]:
        all_drawings = drawings(figures_of(record, with_published=self.published is None or self.has_papers_lines))
        if self.drawn is not None:
            return [drawing for drawing in all_drawings if any(words in drawing.title for words in self.drawn)]
        named_by_paper = [drawing for drawing in all_drawings if "figure" in drawing.title]
        return named_by_paper or all_drawings

    def write_figures(self, folder: Path, record: Record) -> None:
        write_figures(folder, figures_of(record))

    def remarks(self, record: Record) -> list[str]:
        return [*network_sentences(record.get("networks", ())), *super().remarks(record)]

    def values(self, record: Record) -> list[BesideOurs]:
        rows = published_beside_ours(record, self.published)
        return [
            *(BesideOurs(value.title, value.value, ours, of_points=True) for value, ours in rows),
            *self._values_of_ours_alone(record),
        ]

    def _values_of_ours_alone(self, record: Record) -> Iterator[BesideOurs]:
        """Yield a row for each cell with a figure of `not_in_print`."""
        for row in record["rows"]:
            figures = [
                f"{short(row['figures'][figure]['median'])} {unit}"
                for figure, unit in self.not_in_print.items()
                if figure in row["figures"]
            ]
            if figures:
                yield BesideOurs(row["words"], NOT_PRINTED, ", ".join(figures))


@dataclass(frozen=True, kw_only=True)
class TrialPart(PaperPart):
    """A trial of the stock exchange: arms that take turns."""

    @abstractmethod
    def plan(self, extent: Extent) -> TrialPlan:
        """The trial of `command`."""

    def expected_s(self, extent: Extent) -> float:
        plan = self.plan(extent)
        return expected_s_of_trial(plan, [*plan.warm_ups, *plan.steps])

    def measure(self, parent: Path, extent: Extent) -> Record:
        return new_trial(self.plan(extent), str(parent), self.name, _say_on_one_line).record

    def can_go_on(self, folder: Path, extent: Extent) -> bool:
        try:
            begun = read_plan(folder)
        except UserError:
            return False
        return plan_as_dict(replace(begun, resumed=0)) == plan_as_dict(self.plan(extent))

    def go_on(self, folder: Path, extent: Extent) -> Record:  # noqa: ARG002
        return resumed_trial(folder, _say_on_one_line).record

    def read(self, folder: Path) -> Record:
        return read_record(folder / COMPARISON_FILE, ComparisonRecord)

    @property
    def page(self) -> str:
        return "comparison.html"


@dataclass(frozen=True, kw_only=True)
class ExchangePart(TrialPart):
    """The stock exchange over the broker, with Nagle's algorithm off and on at the broker, by the paper's rule."""

    orders_per_s: Sequence[float]
    quick_orders_per_s: Sequence[float]
    full_orders: int
    """Orders at each rate, as the paper has them."""
    full_sampling_interval: int
    quick_seconds: float
    quick_sampling_interval: int
    full_networks: Sequence[str]
    policy: str = "exact-price"

    def command(self, extent: Extent) -> str:
        rates = ",".join(f"{rate:g}" for rate in self._rates(extent))
        if extent.quick:
            length = f"--seconds {self.quick_seconds:g} --sampling-interval {self.quick_sampling_interval}"
        else:
            length = f"--orders {self.full_orders} --sampling-interval {self.full_sampling_interval}"
        transports = shlex.quote(",".join(self._transports(extent)))
        networks = self._networks(extent)
        on_networks = "" if networks == [LOCAL] else f"--network {shlex.quote(','.join(networks))} "
        return (
            f"exchange nagle --transports {transports} --roles broker --rates {rates} --policy {self.policy} {length} "
            f"{on_networks}--repeats {self.repeats_of(extent)}"
        )

    def _rates(self, extent: Extent) -> Sequence[float]:
        return self.quick_orders_per_s if extent.quick else self.orders_per_s

    def _transports(self, extent: Extent) -> list[str]:
        return unique(["amqp", *extent.transports])

    def _networks(self, extent: Extent) -> list[str]:
        if extent.networks:
            return list(extent.networks)
        return [LOCAL] if extent.quick else list(self.full_networks)

    def plan(self, extent: Extent) -> TrialPlan:
        given: dict[str, Any] = {"policy": self.policy}
        if extent.quick:
            given["sampling_interval"] = self.quick_sampling_interval
        else:
            given["sampling_interval"] = self.full_sampling_interval
            given["orders"] = self.full_orders
        arms = nagle_arms(
            self._transports(extent),
            list(self._rates(extent)),
            ["broker"],
            self.quick_seconds,
            given,
            self._networks(extent),
        )
        return TrialPlan(arms=arms, repeats=self.repeats_of(extent), seed=1, study=NAGLE).with_redo(True)

    def drawings(self, record: Record) -> list[Drawing]:
        return drawings(paper_figures(record))

    def write_figures(self, folder: Path, record: Record) -> None:
        write_figures(folder, paper_figures(record))

    def values(self, record: Record) -> list[BesideOurs]:
        rows = []
        names = transports(record)
        for row in published(record):
            clauses = []
            for name, value in zip(names, row.ours, strict=True):
                if value:
                    clauses.append(f"{name} {median_text(value)}" if len(names) > 1 else median_text(value))
            rows.append(BesideOurs(row.title, row.paper, "; ".join(clauses)))
        return [*rows, *table_1_beside_ours(record)]


def _say_on_one_line(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        say(" ".join(sentence.split()))


@dataclass(frozen=True, kw_only=True)
class Paper:
    name: str
    """The word after `exchange paper`."""
    title: str
    """The authors and what they measured, in the words of a list."""
    citation: str
    contents: Sequence[PaperPart | Absent]
    """Everything that the paper shows, in its order."""
    claims: Sequence[Claim]
    open_questions: Sequence[str] = ()
    """What the paper leaves open, and what we chose; misprints."""
    notice: str = ""
    """What a reader of the page has to know first; empty if nothing."""

    def __post_init__(self) -> None:
        """ValueError if two claims have the same statistic: its words tell claims apart."""
        words = [claim.statistic.words for claim in self.claims]
        twice = {of_claim for of_claim in words if words.count(of_claim) > 1}
        if twice:
            raise ValueError(f"two claims of {self.name} have one statistic: {twice}")

    @property
    def parts(self) -> list[PaperPart]:
        return [content for content in self.contents if isinstance(content, PaperPart)]
