"""The fields of run.json that a summary needs. A folder without run.json holds no finished run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from exchange import record_kinds
from exchange.json_records import Record, UnusableRecord
from exchange.words import is_utf8, printable
from exchange.workload import is_steady
from spark.errors import RunUnfinishedError, RunUnreadableError
from transports.regular_files import read_unlinked

TRIAL_MARKS = ("plan.json", "capacity.json")
ALONE = "alone"
"""The experiment of runs that belong to no trial."""
MOST_GATEWAYS = 2**31 - 1
"""The largest number that the tables' column of gateways holds."""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """The facts of a run that a summary needs. A figure that was not measured is None, never 0."""

    experiment: str
    run: str
    status: str | None
    transport: str | None
    offered_orders_per_s: float | None
    orders_per_s: float | None
    warm_up_s: float
    duration_s: float | None
    is_steady: bool = True
    """Whether every second was offered the same rate."""
    gateways: int = 1
    arm: str = ""
    """The settings that repeats share: all but the seed and those that have a column."""
    facts: Mapping[str, float | None] = field(default_factory=dict)
    """Figures from run.json, by the names in spark.summary.FACTS."""


def read_run(folder: Path) -> RunFacts:
    """Read the facts of a finished run that still has its spool. RunUnfinishedError, RunUnreadableError."""
    return facts_of(folder, finished_record(folder))


def finished_record(folder: Path) -> Record:
    """Read run.json of a finished run that still has its spool. RunUnfinishedError, RunUnreadableError."""
    if not folder.is_dir():
        raise RunUnreadableError(f"{folder} is no folder: give the folder of a run, such as results/NAME")
    try:
        content = read_unlinked(folder / "run.json", record_kinds.MOST_RECORD_BYTES, "a record")
        record = record_kinds.decode_record(content, record_kinds.RunRecord)
    except FileNotFoundError as missing:
        raise RunUnfinishedError(
            f"{folder} has no run.json, so the run has not finished: wait for its end, or repeat it"
        ) from missing
    except OSError as failure:
        raise RunUnreadableError(f"cannot read {folder / 'run.json'}: {failure.strerror}") from failure
    except UnusableRecord as failure:
        raise RunUnreadableError(f"{folder / 'run.json'} {failure}") from failure
    if not (folder / "spool").is_dir():
        raise RunUnreadableError(f"{folder} has no spool: only run.json is left of this run, and nothing to analyse")
    return record


def experiment_of(folder: Path) -> str:
    """Return the name of the trial that holds the run's folder, or ALONE."""
    above = folder.resolve().parent
    return above.name if any((above / mark).exists() for mark in TRIAL_MARKS) else ALONE


def facts_of(folder: Path, record: Record) -> RunFacts:
    """Take from run.json the facts that a summary needs. RunUnreadableError if one is out of its range."""
    settings = record.get("settings") or {}
    rates = record.get("rates") or {}
    offered = rates.get("offered_orders_per_s", settings.get("orders_per_s"))
    arrivals = settings.get("arrivals", "fixed")
    gateways = max(len(record.get("pairs") or ()), settings.get("pairs") or 1)
    experiment = experiment_of(folder)
    run = folder.resolve().name
    if not (is_utf8(experiment) and is_utf8(run)):
        raise RunUnreadableError(f"{printable(str(folder))} has a name that is no UTF-8: rename it")
    if gateways > MOST_GATEWAYS:
        raise _damaged(folder, f"settings.pairs is {gateways}, and is at most {MOST_GATEWAYS}")
    return RunFacts(
        experiment=experiment,
        run=run,
        status="recovered" if record.get("recovered") else record.get("status"),
        transport=settings.get("transport"),
        offered_orders_per_s=offered,
        is_steady=is_steady(arrivals),
        orders_per_s=rates.get("orders_per_s"),
        warm_up_s=settings.get("warm_up_s") or 0.0,
        duration_s=record.get("duration_s"),
        gateways=gateways,
    )


def _damaged(folder: Path, why: str) -> RunUnreadableError:
    return RunUnreadableError(printable(f"{folder / 'run.json'} is damaged: {why}"))
