"""Search the capacity of a load in a new folder, record the search, and show the capacity."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from exchange.json_records import SCHEMA, Record
from exchange_simulation.experiments.capacity.curve import ProbeOutcome
from exchange_simulation.experiments.capacity.planned_search import PlannedSearch
from exchange_simulation.experiments.capacity.search import CapacitySearch, SearchSettings
from exchange_simulation.experiments.capacity.searched_load import SearchedLoad
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import new_run_folder, write_json
from exchange_simulation.launching.folder_lock import locked
from exchange_simulation.launching.interrupts import interruption_noted, pause
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.record.machine import host_facts, now, versions
from exchange_simulation.launching.record.noise import noise_words
from exchange_simulation.launching.record.noise_summary import noise_banner
from exchange_simulation.repeats.noise_rule import RedoRule, noise_caveats, set_aside_words
from exchange_simulation.reports.capacity.page import FILE, write_page
from exchange_simulation.reports.capacity.table import headline, show
from exchange_simulation.reports.progress import part_of_whole
from exchange_simulation.reports.report import outcome_line, print_measured

VALUE_WIDTH = 21
"""The width of a value with its unit in a line of progress."""


@dataclass
class Prober:
    """Makes the probes of a search, each in a folder below `folder`, and calls `on_probe` after each."""

    folder: Path
    load: SearchedLoad
    pause_s: float
    most_probes: int
    rule: RedoRule | None
    """The rule on noisy probes, fixed before the first probe; None if every probe counts."""
    on_probe: Callable[[], object]
    is_interrupted: Callable[[], bool]
    probes: list[Record] = field(default_factory=list)
    set_aside: list[Record] = field(default_factory=list)
    """Noisy probes that were repeated and do not count."""
    _begun_probes: int = 0

    def probe(self, value: float) -> ProbeOutcome:
        """Probe at a value, and repeat the probe while it is noisy and the rule allows. The quietest try counts."""
        number = f"probe {len(self.probes) + 1:>{len(str(self.most_probes))}} of at most {self.most_probes}"
        with part_of_whole(f"{number}:"):
            tries = [self._measure(value)]
            while self._needs_another_try(tries):
                say(f"{number}: {self._in_words(value)}: again, since {noise_words(_run_record_of(tries[-1]))}")
                try:
                    tries.append(self._measure(value))
                except (KeyboardInterrupt, UserError):
                    self.set_aside += tries
                    raise
        chosen = self._chosen(tries)
        self.set_aside += [probe for probe in tries if probe is not chosen]
        self.probes.append(chosen)
        self._say_outcome(number, chosen)
        self.on_probe()
        return ProbeOutcome(chosen[self.load.axis.name], chosen["holds"], chosen["log_ratio"])

    def _say_outcome(self, number: str, probe: Record) -> None:
        """Tell the user whether a probe held, and if not, why. `number` has its number in words."""
        outcome = f"failed, {probe['why']}" if probe["why"] else "held"
        say(f"{number}: {self._in_words(probe[self.load.axis.name])}: {outcome}")

    def _in_words(self, value: float) -> str:
        """Return the value with its unit, padded to the width of the progress lines' first column."""
        words = self.load.axis.in_words(f"{value:,.0f}")
        return f"{words:>{VALUE_WIDTH}}"

    def _needs_another_try(self, tries: list[Record]) -> bool:
        """Return whether the rule wants one more try at the value of these tries."""
        if self.rule is None:
            return False
        extra_probes = len(self.set_aside) + len(tries) - 1
        return self.rule.wants([_run_record_of(probe) for probe in tries], extra_probes)

    def _chosen(self, tries: list[Record]) -> Record:
        """Return the try that counts."""
        if self.rule is None:
            return tries[0]
        run_records = [_run_record_of(probe) for probe in tries]
        chosen = self.rule.choose(run_records)
        assert chosen is not None
        return tries[run_records.index(chosen)]

    def _measure(self, value: float) -> Record:
        """Measure at a value in a new folder.

        UserError if the probe cannot be made; KeyboardInterrupt if Ctrl-C ended it early.
        """
        if self._begun_probes:
            pause(self.pause_s)
        self._begun_probes += 1
        folder = new_run_folder(self.folder, f"{self._begun_probes:03}-{value:.0f}")
        probe = self._unless_interrupted(lambda: self.load.probe(folder, value))
        return {"run": folder.name, **probe}

    def ceiling(self) -> float:
        """Measure the highest value that can be offered. Raises UserError and KeyboardInterrupt as `_measure` does."""
        return float(self._unless_interrupted(lambda: self.load.ceiling(self.folder / "000-ceiling")))

    def _unless_interrupted(self, measure: Callable[[], Any]) -> Any:
        """Return the result of `measure`. After Ctrl-C raises KeyboardInterrupt, even if `measure` raised UserError."""
        try:
            result = measure()
        except UserError:
            if self.is_interrupted():
                raise KeyboardInterrupt from None
            raise
        if self.is_interrupted():
            raise KeyboardInterrupt
        return result


def _run_record_of(probe: Record) -> Record:
    """Build the smallest run record that a RedoRule reads, from a probe."""
    return {"name": probe["run"], "noise": {"share_of_all_cpus": probe["noise_share"]}}


class CapacityRecordFile:
    """capacity.json of a search under way: its header, which is fixed at the start, and its latest state."""

    def __init__(self, folder: Path, load: SearchedLoad, rule: RedoRule | None) -> None:
        self._path = folder / FILE
        self._rule = rule
        self._header = {
            "schema": SCHEMA,
            "name": folder.name,
            "started_at": now(),
            **load.record_header(),
            "axis": asdict(load.axis),
            "host": host_facts(),
            "versions": versions(),
        }

    def write(self, prober: Prober, search: CapacitySearch, is_over: bool) -> Record:
        """Write the record of the search so far, and return it. Estimate and curve are added if `is_over`."""
        state = search.as_dict(is_over)
        record = {
            **self._header,
            **state,
            "flags": [*state["flags"], *self._noise_flags(prober)],
            "probes": prober.probes,
            "redo_noisy": asdict(self._rule) if self._rule else None,
            "set_aside": prober.set_aside,
        }
        write_json(self._path, record)
        return record

    def _noise_flags(self, prober: Prober) -> list[str]:
        """Return warnings about probes that were set aside for noise, and about the noise of those that count."""
        flags = []
        if self._rule and prober.set_aside:
            run_records = [_run_record_of(probe) for probe in prober.set_aside]
            flags.append(set_aside_words(run_records, self._rule))
        shares = [probe["noise_share"] for probe in prober.probes]
        flags += noise_caveats(shares, len(prober.set_aside), self._rule, "probes")
        return flags


class MeasuredCapacity(NamedTuple):
    """The record of a search, and the path of its page."""

    record: Record
    page: Path
    is_complete: bool
    """False if the search was stopped early."""


def capacity(load: SearchedLoad, search_settings: SearchSettings, folder: Path, as_json: bool) -> int:
    """Search the capacity and show it. Returns the exit code: 0 if the search is complete, else 1."""
    measured = measured_capacity(load, search_settings, folder)
    record = measured.record
    line = outcome_line(headline(record), noise_banner(record, "probes"))
    print_measured(record, as_json, partial(show, record), measured.page, line)
    return 0 if measured.is_complete else 1


def measured_capacity(load: SearchedLoad, search_settings: SearchSettings, folder: Path) -> MeasuredCapacity:
    """Search the capacity in a new folder. UserError if the first probe cannot start."""
    planned = PlannedSearch.of(load, search_settings)
    lowest_value = planned.lowest_value
    rule = planned.rule
    with interruption_noted() as interruption, locked(new_run_folder(folder.parent, folder.name)):
        say(planned.in_one_line)
        capacity_record = CapacityRecordFile(folder, load, rule)
        prober = Prober(
            folder=folder,
            load=load,
            pause_s=search_settings.pause_s,
            most_probes=search_settings.most_probes,
            rule=rule,
            on_probe=lambda: None,
            is_interrupted=lambda: interruption.came,
        )
        search = CapacitySearch(prober.probe, prober.ceiling, lowest_value, search_settings, load.axis)
        prober.on_probe = lambda: capacity_record.write(prober, search, is_over=False)
        _run(search, prober)
        record = capacity_record.write(prober, search, is_over=True)
        return MeasuredCapacity(record, write_page(folder, record), is_complete=not search.stopped)


def _run(search: CapacitySearch, prober: Prober) -> None:
    """Run the search. UserError, and no folder, if the search fails before the first probe has ended."""
    try:
        with prober.load.ready():
            search.run()
    except KeyboardInterrupt:
        search.stopped = "interrupted"
    except UserError as error:
        if not (prober.probes or prober.set_aside):
            shutil.rmtree(prober.folder)
            raise
        search.stopped = error.message
