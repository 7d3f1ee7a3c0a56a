"""`exchange capacity`: probes a load in a folder of its own, and shows what the search finds."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from exchange.json_records import SCHEMA, LoadAxis, Record
from exchange_simulation.experiments.capacity.curve import ProbeOutcome
from exchange_simulation.experiments.capacity.search import CapacitySearch, SearchSettings
from exchange_simulation.experiments.trials.execution import CtrlC
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import new_run_folder, write_json
from exchange_simulation.launching.interrupts import ended_as_by_ctrl_c
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.record.machine import host_facts, now, versions
from exchange_simulation.launching.record.noise import noise_words
from exchange_simulation.repeats.noise_rule import RedoRule, noise_caveats, set_aside_words
from exchange_simulation.reports.capacity.page import FILE, write_page
from exchange_simulation.reports.capacity.table import show
from exchange_simulation.reports.exports import print_measured


class SearchedLoad(Protocol):
    """The load that a search turns up: orders a second to the exchange, or the scale of a benchmark."""

    @property
    def axis(self) -> LoadAxis: ...

    def least(self) -> float:
        """The lowest value that can be judged. UserError if the search starts below it, or nothing can be measured."""

    def known(self) -> Record:
        """The objective and the settings, as the record has them."""

    def ready(self) -> AbstractContextManager[None]:
        """A context with what all probes share."""

    def ceiling(self, folder: Path) -> float:
        """The highest value that can be offered; the run that measures it leaves its files in `folder`."""

    def probe(self, folder: Path, value: float) -> Record:
        """Measure at a value in `folder`. UserError if that cannot start.

        Returns the probe's part of the record: the value under the axis's name, `holds`, `why` if it does not hold,
        `log_ratio` of figure and bound if there is a figure, `noise_share`, and more.
        """


@dataclass
class Prober:
    """Makes a probe for each value, in the capacity's folder; `on_probe` is called after each."""

    folder: Path
    load: SearchedLoad
    pause_s: float
    rule: RedoRule | None
    """The rule on noisy probes, fixed before the first probe; None if every probe counts."""
    on_probe: Callable[[Record], None]
    interrupted: Callable[[], bool]
    probes: list[Record] = field(default_factory=list)
    set_aside: list[Record] = field(default_factory=list)
    """Noisy probes, which were made again."""
    _begun: int = 0

    def probe(self, value: float) -> ProbeOutcome:
        """Make the probe, and make it again while it is noisy, as far as the rule allows; the quietest try counts."""
        tries = [self._measure(value)]
        while self._is_to_be_made_again(tries):
            say(f"{self._in_words(value)}: again, since {noise_words(_noise_of(tries[-1]))}")
            try:
                tries.append(self._measure(value))
            except (KeyboardInterrupt, UserError):
                self.set_aside += tries
                raise
        chosen = self._chosen(tries)
        self.set_aside += [probe for probe in tries if probe is not chosen]
        self.probes.append(chosen)
        self.on_probe(chosen)
        return ProbeOutcome(chosen[self.load.axis.name], chosen["holds"], chosen["log_ratio"])

    def say_outcome(self, probe: Record) -> None:
        """Tell the user how a probe ended."""
        outcome = f"failed, {probe['why']}" if probe["why"] else "held"
        say(f"{self._in_words(probe[self.load.axis.name])}: {outcome}")

    def _in_words(self, value: float) -> str:
        """Return the value with its unit, as wide as a column of the progress."""
        return f"{self.load.axis.in_words(f'{value:,.0f}'):>21}"

    def _is_to_be_made_again(self, tries: list[Record]) -> bool:
        if self.rule is None:
            return False
        extra_probes = len(self.set_aside) + len(tries) - 1
        return self.rule.wants([_noise_of(probe) for probe in tries], extra_probes)

    def _chosen(self, tries: list[Record]) -> Record:
        """Return the try that counts."""
        if self.rule is None:
            return tries[0]
        noises = [_noise_of(probe) for probe in tries]
        chosen = self.rule.choose(noises)
        assert chosen is not None
        return tries[noises.index(chosen)]

    def _measure(self, value: float) -> Record:
        """Measure at a value in a new folder.

        UserError if the probe cannot be made; KeyboardInterrupt if Ctrl-C ended it early.
        """
        if self._begun:
            time.sleep(self.pause_s)
        self._begun += 1
        folder = new_run_folder(self.folder, f"{self._begun:03}-{value:.0f}")
        return {"run": folder.name, **self._unless_interrupted(lambda: self.load.probe(folder, value))}

    def ceiling(self) -> float:
        """Measure the highest value that can be offered. UserError, KeyboardInterrupt as for a probe."""
        return float(self._unless_interrupted(lambda: self.load.ceiling(self.folder / "000-ceiling")))

    def _unless_interrupted(self, measure: Callable[[], Any]) -> Any:
        """Return what was measured. KeyboardInterrupt after Ctrl-C, also where that made the measurement fail."""
        try:
            measured = measure()
        except UserError:
            if self.interrupted():
                raise KeyboardInterrupt from None
            raise
        if self.interrupted():
            raise KeyboardInterrupt
        return measured


def _noise_of(probe: Record) -> Record:
    """Return the part of a run's record that the rule looks at."""
    return {"name": probe["run"], "noise": {"share_of_all_cpus": probe["noise_share"]}}


class MeasuredCapacity(NamedTuple):
    """A search that was made, with its folder, record and page."""

    record: dict[str, Any]
    page: Path
    is_whole: bool
    """False if the search was stopped early."""


def capacity(load: SearchedLoad, search_settings: SearchSettings, folder: Path, as_json: bool) -> int:
    """Search the capacity and show it. Returns the exit code: 0 if the search is complete, else 1."""
    measured = measured_capacity(load, search_settings, folder)
    print_measured(measured.record, as_json, partial(show, measured.record), measured.page)
    return 0 if measured.is_whole else 1


def measured_capacity(load: SearchedLoad, search_settings: SearchSettings, folder: Path) -> MeasuredCapacity:
    """Search the capacity in a new folder. UserError if the first probe cannot start."""
    least = load.least()
    new_run_folder(folder.parent, folder.name)
    rule = RedoRule.of_plan(search_settings.most_probes) if search_settings.redo_noisy else None
    known_before = {
        "schema": SCHEMA,
        "name": folder.name,
        "started_at": now(),
        **load.known(),
        "axis": asdict(load.axis),
        "host": host_facts(),
        "versions": versions(),
    }

    def write_record(is_over: bool = False) -> dict[str, Any]:
        searched = search.as_dict(is_over)
        flags = list(searched["flags"])
        if rule and prober.set_aside:
            flags.append(set_aside_words([_noise_of(probe) for probe in prober.set_aside], rule))
        shares = [probe["noise_share"] for probe in prober.probes]
        flags += noise_caveats(shares, len(prober.set_aside), rule, "probes")
        record = {
            **known_before,
            **searched,
            "flags": flags,
            "probes": prober.probes,
            "redo_noisy": asdict(rule) if rule else None,
            "set_aside": prober.set_aside,
        }
        write_json(folder / FILE, record)
        return record

    def on_probe(probe: Record) -> None:
        prober.say_outcome(probe)
        write_record()

    with ended_as_by_ctrl_c(), CtrlC.noted() as ctrl_c:
        prober = Prober(folder, load, search_settings.pause_s, rule, on_probe, lambda: ctrl_c.pressed)
        search = CapacitySearch(prober.probe, prober.ceiling, least, search_settings, load.axis)
        _run(search, prober)
    record = write_record(is_over=True)
    return MeasuredCapacity(record, write_page(folder, record), is_whole=not search.stopped)


def _run(search: CapacitySearch, prober: Prober) -> None:
    """Run the search. A mistake before anything was measured removes the folder and raises UserError."""
    try:
        with contextlib.suppress(KeyboardInterrupt), prober.load.ready():
            search.run()
    except UserError as error:
        if not (prober.probes or prober.set_aside):
            shutil.rmtree(prober.folder)
            raise
        search.stopped = error.message
