"""The kinds of folder that a results directory holds. A new kind is a file with these functions, and an entry here."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cli.looking_back import again, benches, capacities, run_difference, runs, simulations, trial_difference, trials
from cli.looking_back.row import Row
from exchange.json_records import Record
from runs.errors import UserError


class Rerun(Protocol):
    """Once more what is in a folder, into `results`, under a name or one that is made; the exit code."""

    def __call__(self, folder: Path, results: str, name: str | None, *, with_spark: bool, as_json: bool) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Kind:
    name: str
    marks: tuple[str, ...]
    """A folder that holds one of these is of this kind, and of no later one in the table."""
    file: str
    """Its record, which `read` reads."""
    row: Callable[[Path], Row]
    read: Callable[[Path], Record]
    """Unusable where there is none that this version can use."""
    show: Callable[[Path, Record], None]
    differ: Callable[[Record, Record], Record]
    """What differs between two; `show_difference` presents it."""
    show_difference: Callable[[Record], None]
    rerun: Rerun


KINDS = (
    Kind(
        name="trial", marks=trials.MARKS, file=trials.FILE, row=trials.row, read=trials.read, show=trials.show,
        differ=trial_difference.differ, show_difference=trial_difference.show, rerun=again.trial_again,
    ),
    Kind(
        name="capacity", marks=capacities.MARKS, file=capacities.FILE, row=capacities.row, read=capacities.read,
        show=capacities.show, differ=capacities.differ, show_difference=capacities.show_difference,
        rerun=again.capacity_again,
    ),
    Kind(
        name="simulation", marks=simulations.MARKS, file=simulations.FILE, row=simulations.row, read=simulations.read,
        show=simulations.show, differ=simulations.differ, show_difference=simulations.show_difference,
        rerun=again.simulation_again,
    ),
    Kind(
        name="bench", marks=benches.MARKS, file=benches.FILE, row=benches.row, read=benches.read,
        show=benches.show, differ=benches.differ, show_difference=benches.show_difference, rerun=again.bench_again,
    ),
    Kind(
        name="run", marks=runs.MARKS, file=runs.FILE, row=runs.row, read=runs.read, show=runs.show,
        differ=run_difference.differ, show_difference=run_difference.show, rerun=again.run_again,
    ),
)  # fmt: skip


def kind_of(folder: Path) -> Kind | None:
    """None where it is no folder of ours."""
    return next((kind for kind in KINDS if any(os.path.exists(folder / mark) for mark in kind.marks)), None)


def known_kind(folder: Path) -> Kind:
    """UserError where it is no folder of ours."""
    if (kind := kind_of(folder)) is None:
        marks = ", ".join(kind.file for kind in KINDS)
        raise UserError(f"{folder} is no folder of ours: it holds none of {marks}, nor what a run leaves on its way")
    return kind
