"""Lists the kinds of folder in a results directory, and finds a folder by its name.

A new kind is a subclass of FolderKind in a file of its own, and an entry here.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

from exchange.words import counted
from exchange_simulation.cli.results.bench import BenchKind
from exchange_simulation.cli.results.capacity import CapacityKind
from exchange_simulation.cli.results.faults import FaultsKind
from exchange_simulation.cli.results.kind import FolderKind
from exchange_simulation.cli.results.paper import PaperKind
from exchange_simulation.cli.results.run import RunKind
from exchange_simulation.cli.results.simulation import SimulationKind
from exchange_simulation.cli.results.trial import TrialKind
from exchange_simulation.launching.errors import UserError

KINDS: tuple[FolderKind, ...] = (
    TrialKind(),
    CapacityKind(),
    FaultsKind(),
    SimulationKind(),
    PaperKind(),
    BenchKind(),
    RunKind(),
)
"""The kinds in the order in which they claim a folder: the first kind with a mark file in the folder has it."""
MOST_NAMED = 5


def kind_of(folder: Path) -> FolderKind | None:
    """Return the folder's kind; None if no command of ours made it."""
    for kind in KINDS:
        if any(os.path.exists(folder / mark) for mark in kind.marks):
            return kind
    return None


def known_kind(folder: Path) -> FolderKind:
    """Return the folder's kind. UserError if no command of ours made it."""
    kind = kind_of(folder)
    if kind is None:
        marks = ", ".join(kind.file for kind in KINDS)
        raise UserError(f"{folder} is no folder of ours: it holds none of {marks}, nor what a run leaves on its way")
    return kind


def folders(results: Path) -> list[Path]:
    """Return all folders in a results directory. UserError if it cannot be read."""
    try:
        return [path for path in results.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except OSError as error:
        raise UserError(f"cannot read {results}: {error.strerror}; choose another place with --results") from error


def find(results: Path, name: str) -> tuple[Path, FolderKind]:
    """Find a folder by its name, by TRIAL/RUN, by a path, or by a beginning or an end that one name has.

    UserError if none.
    """
    for path in (results / name, Path(name)):
        if os.path.isdir(path):
            return path, known_kind(path)
    known_folders = [path for path in folders(results) if kind_of(path) is not None]
    matches = [path for path in known_folders if path.name.startswith(name) or path.name.endswith(name)]
    if len(matches) == 1:
        return matches[0], known_kind(matches[0])
    if matches:
        names = counted(len(matches), "names")
        raise UserError(f"{names} in {results} begin or end with {name}: {_listed(matches)}; give more")
    close = get_close_matches(name, [path.name for path in known_folders], n=1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    raise UserError(f"{results} holds no run or trial called {name}{meant}; exchange results list shows what there is")


def _listed(paths: list[Path]) -> str:
    """Return the folders' names; the first MOST_NAMED if there are more."""
    names = sorted(path.name for path in paths)
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], "..."]
    return ", ".join(names)
