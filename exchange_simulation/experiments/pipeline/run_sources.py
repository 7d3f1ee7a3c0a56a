"""Find the runs below a folder: the folder itself, the runs in it, and the runs of the trials in it."""

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
from exchange_simulation.launching.transport_defaults import defaults_of
from spark.dataset.ingesting import RunSource
from spark.errors import RunUnfinishedError, RunUnreadableError
from spark.run_facts import PAPER_FIGURES, facts_of, finished_record

READERS = {
    **{metric.name: metric.read for metric in (*COMPARISON_METRICS, *NAGLE_METRICS)},
    "packets": packets("segments"),
}
UNNAMED_SETTINGS = frozenset(
    ("transport", "url", "orders_per_s", "orders", "duration_s", "seed", "record", "capture", "timeout_s")
)
"""Settings that are left out of an arm's name: they have columns, or do not change the figures."""


@dataclass(frozen=True)
class RunSources:
    """The runs below a folder."""

    sources: tuple[RunSource, ...]
    left_out: dict[str, str]
    """By folder of a run that cannot be used, the reason: it is under way, was killed, or is damaged."""


def find_runs(results: Path) -> RunSources:
    """Return all runs but the warm-ups of trials. UserError if the folder is missing, unreadable, or holds no run."""
    folders = [folder for folder in run_folders(results) if not is_warm_up(folder)]
    if not folders:
        raise UserError(f"{results} holds no runs: give the folder of a run, of a trial, or one that holds some")
    sources = []
    left_out = {}
    trials = {folder.parent for folder in folders}
    set_aside_of_trial = {trial: set_aside(trial) for trial in trials}
    for folder in folders:
        try:
            is_set_aside = folder.name in set_aside_of_trial[folder.parent]
            sources.append(source_of(folder, is_set_aside, results))
        except (RunUnfinishedError, RunUnreadableError) as error:
            left_out[str(folder)] = str(error)
    return RunSources(tuple(sources), left_out)


def source_of(folder: Path, is_set_aside: bool, results: Path) -> RunSource:
    """Return the source of a finished run below `results`, from its record. RunUnfinishedError, RunUnreadableError."""
    record = finished_record(folder)
    file_status = (folder / "run.json").stat()
    facts = facts_of(folder, record, results)
    paper_figures = {}
    try:
        for name in PAPER_FIGURES:
            value = READERS[name](record)
            paper_figures[name] = None if value is None else float(value)
        arm = _arm(record.get("settings") or {})
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        why = f"is damaged: {type(error).__name__}: {error}"
        raise RunUnreadableError(printable(f"{folder / 'run.json'} {why}")) from error
    facts = replace(facts, arm=arm, paper_figures=paper_figures)
    fingerprint = f"{file_status.st_size}-{file_status.st_mtime_ns}"
    if is_set_aside:
        facts = replace(facts, status="set aside")
        fingerprint += "-aside"  # a trial under way may set the run aside after it was ingested, and the reverse
    return RunSource(facts=facts, spool=folder / "spool", fingerprint=fingerprint)


def _arm(settings: dict[str, Any]) -> str:
    """Return an arm's name: its settings that differ from the defaults. For example: nagle=gateway,engine packing=10"""
    known_settings = RunSettings().as_dict()
    defaults = known_settings | defaults_of(str(settings.get("transport")))
    parts = []
    for name, value in sorted(settings.items()):
        if name not in known_settings or name in UNNAMED_SETTINGS:
            continue
        if value is not None and value != defaults[name]:
            parts.append(f"{name}={_in_words(value)}")
    return " ".join(parts)


def _in_words(value: Any) -> str:
    """Return a setting's value as an option has it: the parts of a list with commas between them."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
