"""Find the runs below a folder: the folder's own, those in it, those of the trials in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from exchange.settings import RunSettings
from exchange.words import printable
from exchange_simulation.experiments.trials.observations import is_warm_up, set_aside
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import run_folders
from exchange_simulation.launching.metrics import COMPARISON_METRICS, NAGLE_METRICS, packets
from exchange_simulation.launching.transport_settings import defaults_of
from spark.dataset.ingesting import RunSource
from spark.errors import RunUnfinishedError, RunUnreadableError
from spark.run_facts import facts_of, finished_record
from spark.summary import FACTS

READERS = {
    **{metric.name: metric.read for metric in (*COMPARISON_METRICS, *NAGLE_METRICS)},
    "packets": packets("segments"),
}
OF_NO_ARM = frozenset(
    ("transport", "url", "orders_per_s", "orders", "duration_s", "seed", "record", "capture", "timeout_s")
)
"""Settings that are no part of an arm's name: other columns hold them, or they do not change what is measured."""


@dataclass(frozen=True)
class RunSources:
    """`left_out` says by folder why its run was left out: it goes on, was killed, or is damaged."""

    sources: tuple[RunSource, ...]
    left_out: dict[str, str]


def find_runs(results: Path) -> RunSources:
    """Find all runs but the warm-ups of trials. UserError if the folder is missing, unreadable, or holds no run."""
    folders = [folder for folder in run_folders(results) if not is_warm_up(folder)]
    if not folders:
        raise UserError(f"{results} holds no runs: give the folder of a run, of a trial, or one that holds some")
    sources, left_out = [], {}
    aside = {trial: set_aside(trial) for trial in {folder.parent for folder in folders}}
    for folder in folders:
        try:
            sources.append(source_of(folder, folder.name in aside[folder.parent]))
        except (RunUnfinishedError, RunUnreadableError) as error:
            left_out[str(folder)] = str(error)
    return RunSources(tuple(sources), left_out)


def source_of(folder: Path, is_set_aside: bool) -> RunSource:
    """Read a finished run's record. RunUnfinishedError, RunUnreadableError."""
    record, status = finished_record(folder), (folder / "run.json").stat()
    run = facts_of(folder, record)
    try:
        measured = {name: READERS[name](record) for name in FACTS}
        facts = {name: None if value is None else float(value) for name, value in measured.items()}
        arm = _arm(record.get("settings") or {})
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        why = f"is damaged: {type(error).__name__}: {error}"
        raise RunUnreadableError(printable(f"{folder / 'run.json'} {why}")) from error
    complete = replace(run, arm=arm, facts=facts)
    fingerprint = f"{status.st_size}-{status.st_mtime_ns}"
    if is_set_aside:  # a trial that goes on may change its mind
        complete, fingerprint = replace(complete, status="set aside"), f"{fingerprint}-aside"
    return RunSource(record=complete, spool=folder / "spool", fingerprint=fingerprint)


def _arm(settings: dict[str, Any]) -> str:
    """Name an arm by its settings that differ from the defaults, as in `nagle=gateway,engine`."""
    usual = RunSettings().as_dict()
    relevant = {name: value for name, value in settings.items() if name in usual and name not in OF_NO_ARM}
    usual |= defaults_of(str(settings.get("transport")))
    return " ".join(
        f"{name}={_written(value)}" for name, value in sorted(relevant.items()) if value not in (usual[name], None)
    )


def _written(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
