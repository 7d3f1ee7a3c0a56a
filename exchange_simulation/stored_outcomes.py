"""Outcomes of earlier measurements: one by its folder, and all of a results folder."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from exchange.json_records import Record
from exchange.record_kinds import (
    BenchRecord,
    CapacityRecord,
    ComparisonRecord,
    FaultsRecord,
    PaperRecord,
    RunRecord,
    SimulationRecord,
)
from exchange_simulation.launching.record.reading import Unusable, damage_named, read_record
from exchange_simulation.outcomes import (
    Benchmark,
    Capacity,
    Comparison,
    FaultMatrix,
    MeasuredOutcome,
    PaperOutcome,
    Run,
    SimulatedMarket,
)

KINDS: dict[str, tuple[type, type[MeasuredOutcome]]] = {
    "comparison.json": (ComparisonRecord, Comparison),
    "capacity.json": (CapacityRecord, Capacity),
    "faults.json": (FaultsRecord, FaultMatrix),
    "simulation.json": (SimulationRecord, SimulatedMarket),
    "bench.json": (BenchRecord, Benchmark),
    "paper.json": (PaperRecord, PaperOutcome),
    "run.json": (RunRecord, Run),
}
"""By the file of a folder's record: the type of its content, and the outcome."""


class NoOutcome(LookupError):
    """A folder holds no record of a measurement, or none that this version can use."""


def open(folder: str | Path) -> MeasuredOutcome:
    """Return the outcome of an earlier measurement, from its folder: a `Run`, a `Comparison` and so on.

    For example: `open("results/first").plot()`. NoOutcome if the folder has none.
    """
    path = Path(folder)
    for file, (content, outcome) in KINDS.items():
        if (path / file).exists():
            return outcome(path, _record(path, file, content))
    known = ", ".join(KINDS)
    raise NoOutcome(f"{path} holds none of {known}: give the folder of a measurement, as results/first")


def _record(path: Path, file: str, content: type) -> Record:
    try:
        with damage_named(path):
            return read_record(path / file, content)
    except click.ClickException as error:
        raise NoOutcome(error.format_message()) from error


def list_results(results: str | Path = "results") -> list[MeasuredOutcome]:
    """Return the outcomes of a results folder, the newest last. Folders without a usable record are left out.

    For example: `list_results()[-1]`. NoOutcome if the folder cannot be read.
    """
    try:
        folders = [path for path in Path(results).iterdir() if path.is_dir() and not path.name.startswith(".")]
    except OSError as error:
        raise NoOutcome(f"cannot read {results}: {error.strerror}") from error
    outcomes = []
    for folder in folders:
        with contextlib.suppress(NoOutcome, Unusable):
            outcomes.append(open(folder))
    return sorted(outcomes, key=lambda outcome: (outcome.started_at or "", outcome.folder.name))
