"""A part of a paper that searches the rate beyond which the exchange fails."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from exchange.json_records import Record
from exchange.record_kinds import CapacityRecord
from exchange_simulation.experiments.capacity.capacity import measured_capacity
from exchange_simulation.experiments.capacity.exchange_rates import ExchangeRates, objective_of
from exchange_simulation.experiments.capacity.planned_search import PlannedSearch
from exchange_simulation.experiments.capacity.search import SearchSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.launch.brokers import broker_start_s
from exchange_simulation.launching.record.reading import read_record
from exchange_simulation.launching.typed_settings import run_settings
from exchange_simulation.papers.beside_ours import BesideOurs
from exchange_simulation.papers.extent import Extent
from exchange_simulation.papers.paper import PaperPart
from exchange_simulation.reports.capacity.page import FILE, capacity_figures
from exchange_simulation.reports.capacity.table import headline
from exchange_simulation.reports.drawing.figures import Drawing, drawings, write_figures


@dataclass(frozen=True, kw_only=True)
class CapacityPart(PaperPart):
    """A search for the highest rate at which the exchange loses nothing and keeps the rate, on loopback."""

    transport: str
    policy: str
    papers_rate: str
    """The rate beyond which the paper's exchange failed."""
    full_search: SearchSettings
    quick_search: SearchSettings
    objective: str = "loss = 0"

    @property
    def why_no_repeats(self) -> str:
        return "a search probes each rate as often as it needs"

    @property
    def why_loopback_alone(self) -> str:
        return "exchange capacity searches on one network"

    def command(self, extent: Extent) -> str:
        search = self._search(extent)
        objective = shlex.quote(self.objective)
        return (
            f"exchange capacity --transport {self.transport} --policy {self.policy} --slo {objective} "
            f"--from {search.start_per_s:g} --seconds {search.seconds:g} --probes {search.most_probes}"
        )

    def _search(self, extent: Extent) -> SearchSettings:
        return self.quick_search if extent.quick else self.full_search

    def expected_s(self, extent: Extent) -> float:
        planned = PlannedSearch.of(self.load(extent), self._search(extent))
        return broker_start_s(self.transport) + planned.shortest_s

    def measure(self, parent: Path, extent: Extent) -> Record:
        folder = parent / self.name
        measured_capacity(self.load(extent), self._search(extent), folder)
        return self.read(folder)

    def load(self, extent: Extent) -> ExchangeRates:
        """The load of `command`."""
        search = self._search(extent)
        settings = run_settings(
            transport=self.transport,
            policy=self.policy,
            orders_per_s=search.start_per_s,
            orders=None,
            duration_s=search.seconds,
        )
        return ExchangeRates(settings, objective_of(self.objective), search)

    def can_go_on(self, folder: Path, extent: Extent) -> bool:  # noqa: ARG002
        """A search that was interrupted is made again from its beginning."""
        return False

    def go_on(self, folder: Path, extent: Extent) -> Record:  # noqa: ARG002
        raise UserError(f"{folder} was interrupted: a search is made again from its beginning")

    def read(self, folder: Path) -> Record:
        record = read_record(folder / FILE, CapacityRecord)
        return {**record, "caveats": record["flags"]}

    @property
    def page(self) -> str:
        return "capacity.html"

    def drawings(self, record: Record) -> list[Drawing]:
        return drawings(capacity_figures(record))

    def write_figures(self, folder: Path, record: Record) -> None:
        write_figures(folder, capacity_figures(record))

    def values(self, record: Record) -> list[BesideOurs]:
        return [BesideOurs("the rate beyond which the exchange fails, orders/s", self.papers_rate, headline(record))]
