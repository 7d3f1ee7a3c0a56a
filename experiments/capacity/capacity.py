"""`exchange capacity`: makes probes, which are runs at a rate, and reports what their search finds."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson

from exchange.json_records import SCHEMA, CapacityRecord, Record
from exchange.settings import RunSettings
from exchange.words import counted
from exchange.workload import Arrivals
from experiments.capacity.curve import Outcome
from experiments.capacity.objective import Objective
from experiments.capacity.search import CapacitySearch, SearchSettings
from experiments.trials.execution import CtrlC
from experiments.trials.observations import VALID
from reports.capacity.page import capacity_figures, write_page
from reports.capacity.table import show
from reports.drawing.figures import write_figures
from reports.exports import ReportOptions, flat, print_rows
from reports.live.progress import progress_bar
from runs.errors import UserError
from runs.files import new_run_folder, write_json
from runs.interrupts import ended_as_by_ctrl_c
from runs.launch.brokers import Brokers
from runs.notices import say
from runs.record.machine import host_facts, now, versions
from runs.record.noise import MOST_SHARE, noise_share
from runs.record.reading import read_record
from runs.run import measure
from runs.transport_settings import runs_in_one_process

FILE = "capacity.json"
CEILING_ORDERS = 500_000
LEFT_OUT = 2
"""The last order is no part of a run's figures, and a duration may round one away."""
SPARE = 1.2
"""Random arrivals bring some more or fewer orders in a time."""
NOT_IN_MEMORY: dict[str, Any] = {
    "amqp_client": None, "delivery": None, "nagle": (), "topology": "duplex", "network": "local",
}  # fmt: skip
"""Defaults of the settings that the memory transport lacks."""


@dataclass(frozen=True)
class RunAtRate:
    """A probe's run; `why` is the reason why it does not hold the objective, None if it does."""

    rate_per_s: float
    record: Record
    why: str | None
    log_ratio: float | None

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.rate_per_s, self.why is None, self.log_ratio)

    def as_dict(self) -> dict[str, Any]:
        figures = {name: self.record.get(name) for name in ("status", "completion_us", "lag_us")}
        return {"run": self.record["name"], "orders_per_s": self.rate_per_s, "holds": self.why is None,
                "why": self.why, "log_ratio": self.log_ratio, "noise_share": noise_share(self.record),
                **figures}  # fmt: skip


@dataclass
class Prober:
    """Makes a run for each rate, in the capacity's folder; `on_probe` is called after each."""

    folder: Path
    settings: RunSettings
    objective: Objective
    search_settings: SearchSettings
    brokers: Brokers
    on_probe: Callable[[RunAtRate], None]
    interrupted: Callable[[], bool]
    probes: list[RunAtRate] = field(default_factory=list)

    def probe(self, rate_per_s: float) -> Outcome:
        """UserError if the run cannot start or is too short; KeyboardInterrupt if Ctrl-C ended the run early."""
        if self.probes:
            time.sleep(self.search_settings.pause_s)
        seconds = probe_s(rate_per_s, self.settings, self.objective, self.search_settings)
        settings = replace(self.settings, orders_per_s=rate_per_s, duration_s=seconds)
        record = measure(self._new_folder(f"{rate_per_s:.0f}"), settings, progress_bar(settings), self.brokers)
        if self.interrupted():
            raise KeyboardInterrupt
        why = self.objective.broken_by(record)
        if why is None:
            self._refuse_few_orders(record)
        run = RunAtRate(rate_per_s, record, why, self.objective.log_ratio(record))
        self.probes.append(run)
        self.on_probe(run)
        return run.outcome

    def _refuse_few_orders(self, record: Record) -> None:
        """UserError if the run measured too few orders for the objective, as a run of a short tape does."""
        measured, needed = record["completion_us"]["due"]["count"], self.objective.needed_orders
        if measured < needed:
            what = f"{record['name']} measured {counted(measured, 'orders')}"
            raise UserError(f"{what}; {self.objective.words} needs {needed:,}: offer more, or judge a lower percentile")

    def ceiling_per_s(self) -> float:
        """Orders/s of the generator and the engine with no messaging between them, in threads that share memory."""
        settings = replace(self.settings, **NOT_IN_MEMORY, transport="memory", orders_per_s=None, duration_s=None,
                           orders=CEILING_ORDERS, warm_up_s=0.0, window=max(16_384, self.settings.packing))  # fmt: skip
        record = measure(self._new_folder("ceiling"), settings, progress_bar(settings))
        if self.interrupted():
            raise KeyboardInterrupt
        if record["status"] not in VALID:
            raise UserError(f"the generator's ceiling was not measured: {'; '.join(record['reasons'])}")
        return float(record["rates"]["orders_per_s"])

    def _new_folder(self, what: str) -> Path:
        return new_run_folder(self.folder, f"{len(self.probes) + 1:03}-{what}")


def probe_s(rate_per_s: float, settings: RunSettings, objective: Objective, search: SearchSettings) -> float:
    """How long a probe offers orders: longer at a low rate, so that it has as many as the objective needs."""
    return settings.warm_up_s + max(search.seconds, offered_orders(settings, objective) / rate_per_s)


def offered_orders(settings: RunSettings, objective: Objective) -> float:
    """Orders of a fixed rate in the time in which a probe has as many as the objective needs."""
    arrivals = Arrivals.parse(settings.arrivals)
    spare = 1.0 if settings.arrivals == "fixed" else SPARE
    return spare * (objective.needed_orders + LEFT_OUT) / arrivals.mean_share


def least_rate_per_s(settings: RunSettings, objective: Objective, search: SearchSettings) -> float:
    """The lowest rate at which a probe has as many orders as the objective needs. UserError if --from is lower."""
    needed = offered_orders(settings, objective)
    least = needed / max(search.longest_s, search.seconds)
    if search.start_per_s < least:
        raise UserError(
            f"--from is {search.start_per_s:,g} orders/s, at which {search.longest_s:g} s have "
            f"{search.start_per_s * search.longest_s:,.0f} orders; {objective.words} needs {ceil(needed):,}: "
            f"take --from {ceil(least)} or more, or --longest {ceil(needed / search.start_per_s)}"
        )
    return least


class MeasuredCapacity(NamedTuple):
    """A capacity that was searched, its record and page written."""

    record: dict[str, Any]
    page: Path
    is_whole: bool
    """False if the search was stopped early."""


def capacity(
    settings: RunSettings, objective: Objective, search_settings: SearchSettings, folder: Path, as_json: bool
) -> int:
    """Search the capacity and show it. The exit code: 0 if the search is complete, else 1."""
    found = measured_capacity(settings, objective, search_settings, folder)
    if as_json:
        click.echo(orjson.dumps(found.record, option=orjson.OPT_INDENT_2))
    else:
        show(found.record)
        click.echo(f"page: {found.page}")
    return 0 if found.is_whole else 1


def measured_capacity(
    settings: RunSettings, objective: Objective, search_settings: SearchSettings, folder: Path
) -> MeasuredCapacity:
    """Search the capacity in a new folder. UserError if the first run cannot start."""
    least_per_s = least_rate_per_s(settings, objective, search_settings)
    runs_in_one_process(settings)
    new_run_folder(folder.parent, folder.name)
    known = {"schema": SCHEMA, "name": folder.name, "started_at": now(), "objective": objective.words,
             "needed_orders": objective.needed_orders, "settings": settings.as_dict(), "host": host_facts(),
             "versions": versions()}  # fmt: skip

    def write_record(is_over: bool = False) -> dict[str, Any]:
        found, probes = search.as_dict(is_over), [probe.as_dict() for probe in prober.probes]
        record = {**known, **found, "flags": [*found["flags"], *_noisy(probes)], "probes": probes}
        write_json(folder / FILE, record)
        return record

    def on_probe(probe: RunAtRate) -> None:
        say(f"{probe.rate_per_s:>12,.0f} orders/s: {probe.why or 'held'}")
        write_record()

    with ended_as_by_ctrl_c(), CtrlC() as ctrl_c, Brokers() as brokers:
        prober = Prober(folder, settings, objective, search_settings, brokers, on_probe, lambda: ctrl_c.pressed)
        search = CapacitySearch(prober.probe, prober.ceiling_per_s, least_per_s, search_settings)
        _run(search, prober)
    record = write_record(is_over=True)
    return MeasuredCapacity(record, write_page(folder, record), is_whole=not search.stopped)


def _noisy(probes: list[dict[str, Any]]) -> Iterator[str]:
    """How many probes had much other work, or steal, beside them."""
    shares = [share for probe in probes if (share := probe["noise_share"]) is not None]
    noisy = [share for share in shares if share > MOST_SHARE]
    if noisy:
        yield (
            f"other work or steal took over {MOST_SHARE:.0%} of the processors beside {len(noisy)} of "
            f"{counted(len(probes), 'probes')}, at most {max(noisy):.0%}"
        )


def _run(search: CapacitySearch, prober: Prober) -> None:
    """Run the search. A mistake before anything was measured removes the folder and raises UserError."""
    try:
        with contextlib.suppress(KeyboardInterrupt):
            search.run()
    except UserError as error:
        if not prober.probes:
            shutil.rmtree(prober.folder)
            raise
        search.stopped = error.message


def report_capacity(folder: Path, options: ReportOptions) -> int:
    """Make a capacity's table, page and figure files from its record. The exit code, 0."""
    if options.hlog:
        raise UserError(f"--hlog is of one run, and {folder} is a capacity's folder: give the folder of a run in it")
    record = read_record(folder / FILE, CapacityRecord)
    if options.as_json:
        click.echo(orjson.dumps(record["probes"], option=orjson.OPT_INDENT_2))
    elif options.as_csv:
        print_rows(map(flat, record["probes"]))
    else:
        show(record)
    click.echo(f"page: {write_page(folder, record)}", err=options.quiet)
    if options.figures:
        click.echo(f"figures: {write_figures(folder, capacity_figures(record))}", err=options.quiet)
    return 0
