"""The fields of run.json that a summary needs. A folder without run.json holds no finished run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exchange import record_kinds
from exchange.json_records import Record, UnusableRecord, encode_json, section
from exchange.words import is_utf8, printable
from exchange.workload import is_steady
from spark.errors import RunUnfinishedError, RunUnreadableError
from transports.regular_files import read_unlinked

TRIAL_MARKS = ("plan.json", "capacity.json")
ALONE = "alone"
"""The experiment of runs that belong to no trial, and lie in the folder of results itself."""
MOST_INT = 2**31 - 1
"""The largest number that a column of 32 bits holds."""
MOST_LONG = 2**63 - 1
"""The largest number that a column of 64 bits holds."""
PAPER_FIGURES = (
    "answers_per_s",
    "broker_cpu_percent",
    "gateway_cpu_percent",
    "engine_cpu_percent",
    "cpu_s_per_million",
    "packets",
    "packet_bytes",
    "packet_gap_us",
)
"""Figures of a run from its run.json; null if not measured."""
SEED = "seed"
PACKING = "packing"


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
    paper_figures: Mapping[str, float | None] = field(default_factory=dict)
    """Figures from run.json, by the names in PAPER_FIGURES."""
    seed: int | None = None
    """None for a seed above MOST_LONG, too; `settings` has it."""
    started_at: datetime | None = None
    packing: int | None = None
    policy: str | None = None
    version: str | None = None
    """The version of exchange."""
    noise: float | None = None
    """The share of the processors' time that other processes used; docs/noisy-runs.md."""
    host: Mapping[str, str] = field(default_factory=dict)
    """The machine, by the names in run.json's `host`."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """All settings of run.json that are not null, in words."""


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


def experiment_of(folder: Path, results: Path | None = None) -> str:
    """Return the name of the trial that holds the run's folder, or ALONE.

    With `results`, the folder in which the run was looked for, a folder in it that holds runs counts as a trial.
    """
    above = folder.resolve().parent
    if any((above / mark).exists() for mark in TRIAL_MARKS):
        return above.name
    if results is None or results in (folder, folder.parent):
        return ALONE
    return folder.parent.name


def facts_of(folder: Path, record: Record, results: Path | None = None) -> RunFacts:
    """Take from run.json the facts that a summary needs. RunUnreadableError if one is out of its range.

    `results` is the folder in which the run was looked for, if it is known: its subfolders are experiments.
    `arm` and `paper_figures` stay empty: the reader of a trial fills them.
    """
    settings = record.get("settings") or {}
    rates = record.get("rates") or {}
    offered = rates.get("offered_orders_per_s", settings.get("orders_per_s"))
    arrivals = settings.get("arrivals", "fixed")
    gateways = max(len(record.get("pairs") or ()), settings.get("pairs") or 1, settings.get("gateways") or 1)
    experiment = experiment_of(folder, results)
    run = folder.resolve().name
    if not (is_utf8(experiment) and is_utf8(run)):
        raise RunUnreadableError(f"{printable(str(folder))} has a name that is no UTF-8: rename it")
    if gateways > MOST_INT:
        raise _damaged(folder, f"settings.pairs is {gateways}, and is at most {MOST_INT}")
    seed = _whole_number(folder, settings, SEED)
    packing = _whole_number(folder, settings, PACKING)
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
        seed=seed if seed is None or seed <= MOST_LONG else None,
        started_at=_time(folder, record),
        packing=None if packing is None else min(packing, MOST_INT),
        policy=_words(settings.get("policy")),
        version=_words(section(record, "versions").get("exchange")),
        noise=_share(section(record, "noise").get("share_of_all_cpus")),
        host=_words_by_name(section(record, "host")),
        settings=_words_by_name(settings),
    )


def _whole_number(folder: Path, settings: Mapping[str, Any], name: str) -> int | None:
    """Return a setting; None if it is absent. RunUnreadableError if it is no whole number from 0 on."""
    value = settings.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _damaged(folder, f"settings.{name} is {value!r}, and is a whole number from 0 on")
    return value


def _time(folder: Path, record: Record) -> datetime | None:
    """Return when the run started; None if that is not known. RunUnreadableError if it is no time."""
    text = record.get("started_at")
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _damaged(folder, f"started_at is {text!r}, and is a time as 2026-11-27T00:20:16+00:00") from None


def _share(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _words_by_name(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that are not null in words, by name."""
    return {name: _some_words(value) for name, value in sorted(values.items()) if value is not None}


def _words(value: Any) -> str | None:
    return None if value is None else _some_words(value)


def _some_words(value: Any) -> str:
    """Return a value in words: a list as an option has it, with commas; objects as JSON; all of it printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list) and not any(isinstance(part, list | dict) for part in value):
        return ",".join(_some_words(part) for part in value)
    return printable(encode_json(value).decode())


def _damaged(folder: Path, why: str) -> RunUnreadableError:
    return RunUnreadableError(printable(f"{folder / 'run.json'} is damaged: {why}"))
