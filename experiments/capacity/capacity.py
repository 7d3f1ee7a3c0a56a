"""`exchange capacity`: reads an objective such as `p99 <= 1ms, lag p99 <= 500us`, makes runs, judges them, reports."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import orjson

from exchange.json_records import SCHEMA, Record
from exchange.settings import RunSettings
from experiments.capacity.search import CapacitySearch, SearchSettings
from experiments.capacity.table import show
from experiments.trials.execution import CtrlC
from reports.live.progress import progress_bar
from runs.errors import UserError
from runs.files import new_run_folder, write_json
from runs.interrupts import ended_as_by_ctrl_c
from runs.launch.brokers import Brokers
from runs.record.machine import host_facts, now, versions
from runs.run import measure
from runs.transport_settings import runs_in_one_process

FILE = "capacity.json"
CEILING_ORDERS = 500_000
NOT_IN_MEMORY: dict[str, Any] = {
    "amqp_client": None, "delivery": None, "nagle": (), "topology": "duplex", "network": "local",
}  # fmt: skip
"""Defaults of the settings that the memory transport lacks."""

CLOCKS = {"due": "due", "": "due", "handed over": "handed_over", "lag": "lag"}
"""The record's clock by the words before a figure: completion from due time or handing over, or the gateway's lag."""
FIGURES = {"mean": "mean", "p50": "p50", "p90": "p90", "p99": "p99", "p99.9": "p999", "max": "max"}
UNITS_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
TERM = re.compile(r"(?:(due|handed over|lag) +)?(mean|p50|p90|p99\.9|p99|max) *<=? *([0-9]*\.?[0-9]+) *(ns|us|ms|s)")
LOSS = re.compile(r"loss *(?:<=|==?) *0")
ALLOWED = "FIGURE <= TIME, with commas between several: p99 <= 1ms, lag p99 <= 500us, max <= 20ms, loss = 0"


@dataclass(frozen=True)
class Term:
    """One figure of a run and its upper bound."""

    clock: str
    figure: str
    most_us: float
    words: str

    def broken_by(self, record: Record) -> str | None:
        """The measured value as a sentence, None if it is within the bound."""
        measured: dict[str, Any] = record.get("completion_us", {}) | {"lag": record.get("lag_us", {})}
        value_us = measured.get(self.clock, {}).get(self.figure)
        if value_us is None:
            return f"{self.words}: not measured"
        return None if value_us <= self.most_us else f"{self.words}: {value_us:,.0f} us"


@dataclass(frozen=True)
class Objective:
    """All terms must hold, and the run must be complete: nothing was lost and the rate was kept."""

    terms: tuple[Term, ...]

    def broken_by(self, record: Record) -> str | None:
        """The first reason why the run does not hold the objective, None if it does."""
        if record["status"] != "complete":
            return f"{record['status']}: {next(iter(record['reasons']), 'no reason known')}"
        return next((why for term in self.terms if (why := term.broken_by(record))), None)

    @property
    def words(self) -> str:
        return ", ".join(term.words for term in self.terms) or "loss = 0"


def objective_of(text: str) -> Objective:
    """The objective that `text` describes. UserError names the part that is not understood."""
    parts = [part.strip() for part in text.split(",")]
    return Objective(tuple(_term(part, text) for part in parts if not LOSS.fullmatch(part)))


def _term(part: str, text: str) -> Term:
    found = TERM.fullmatch(part)
    if found is None:
        raise UserError(f"--slo is {text!r}, of which {part!r} is not understood; it takes {ALLOWED}")
    clock, figure, number, unit = found.groups()
    words = " ".join(filter(None, (clock, figure, "<=", number + unit)))
    return Term(CLOCKS[clock or ""], FIGURES[figure], float(number) * UNITS_US[unit], words)


@dataclass(frozen=True)
class Probe:
    """A run at a rate; `why` is the reason why it does not hold the objective, None if it does."""

    rate_per_s: float
    record: Record
    why: str | None

    @property
    def holds(self) -> bool:
        return self.why is None

    def as_dict(self) -> dict[str, Any]:
        figures = {name: self.record.get(name) for name in ("status", "completion_us", "lag_us")}
        return {"run": self.record["name"], "orders_per_s": self.rate_per_s, "holds": self.holds,
                "why": self.why, **figures}  # fmt: skip


@dataclass
class Prober:
    """Makes a run for each rate, in the capacity's folder; `on_probe` is called after each."""

    folder: Path
    settings: RunSettings
    objective: Objective
    brokers: Brokers
    pause_s: float
    on_probe: Callable[[Probe], None]
    interrupted: Callable[[], bool]
    probes: list[Probe] = field(default_factory=list)

    def holds(self, rate_per_s: float) -> bool:
        """UserError if the run cannot start; KeyboardInterrupt if Ctrl-C ended the run early."""
        if self.probes:
            time.sleep(self.pause_s)
        settings = replace(self.settings, orders_per_s=rate_per_s)
        record = measure(self._new_folder(f"{rate_per_s:.0f}"), settings, progress_bar(settings), self.brokers)
        if self.interrupted():
            raise KeyboardInterrupt
        probe = Probe(rate_per_s, record, self.objective.broken_by(record))
        self.probes.append(probe)
        self.on_probe(probe)
        return probe.holds

    def ceiling_per_s(self) -> float:
        """Orders/s of the generator and the engine with no messaging between them, in threads that share memory."""
        settings = replace(self.settings, **NOT_IN_MEMORY, transport="memory", orders_per_s=None, duration_s=None,
                           orders=CEILING_ORDERS, warm_up_s=0.0, window=max(16_384, self.settings.packing))  # fmt: skip
        record = measure(self._new_folder("ceiling"), settings, progress_bar(settings))
        return float(record["rates"]["orders_per_s"])

    def _new_folder(self, what: str) -> Path:
        return new_run_folder(self.folder, f"{len(self.probes) + 1:03}-{what}")


def capacity(
    settings: RunSettings, objective: Objective, search_settings: SearchSettings, folder: Path, as_json: bool
) -> int:
    """Search the capacity. The exit code: 0 if the search is complete, else 1."""
    runs_in_one_process(settings)
    new_run_folder(folder.parent, folder.name)
    known = {"schema": SCHEMA, "name": folder.name, "started_at": now(), "objective": objective.words,
             "settings": settings.as_dict(), "host": host_facts(), "versions": versions()}  # fmt: skip

    def write_record() -> dict[str, Any]:
        record = {**known, **search.as_dict(), "probes": [probe.as_dict() for probe in prober.probes]}
        write_json(folder / FILE, record)
        return record

    def on_probe(probe: Probe) -> None:
        click.echo(f"{probe.rate_per_s:>12,.0f} orders/s: {probe.why or 'held'}", err=True)
        write_record()

    with ended_as_by_ctrl_c(), CtrlC() as ctrl_c, Brokers() as brokers:
        pause_s = search_settings.pause_s
        prober = Prober(folder, settings, objective, brokers, pause_s, on_probe, lambda: ctrl_c.pressed)
        search = CapacitySearch(prober.holds, prober.ceiling_per_s, search_settings)
        _run(search, prober)
    record = write_record()
    if as_json:
        click.echo(orjson.dumps(record, option=orjson.OPT_INDENT_2))
    else:
        show(record)
        click.echo(f"record: {folder / FILE}")
    return 1 if search.stopped else 0


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
