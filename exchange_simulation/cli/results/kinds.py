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
from exchange_simulation.cli.results.run import RunKind
from exchange_simulation.cli.results.simulation import SimulationKind
from exchange_simulation.cli.results.trial import TrialKind
from exchange_simulation.launching.errors import UserError

KINDS: tuple[FolderKind, ...] = (TrialKind(), CapacityKind(), FaultsKind(), SimulationKind(), BenchKind(), RunKind())
"""The first kind here that has one of its mark files in a folder claims the folder."""
MOST_NAMED = 5


def kind_of(folder: Path) -> FolderKind | None:
    """The folder's kind; None if no command of ours made it."""
    return next((kind for kind in KINDS if any(os.path.exists(folder / mark) for mark in kind.marks)), None)


def known_kind(folder: Path) -> FolderKind:
    """The folder's kind. UserError if no command of ours made it."""
    kind = kind_of(folder)
    if kind is None:
        marks = ", ".join(kind.file for kind in KINDS)
        raise UserError(f"{folder} is no folder of ours: it holds none of {marks}, nor what a run leaves on its way")
    return kind


def folders(results: Path) -> list[Path]:
    """All folders in a results directory. UserError if it cannot be read."""
    try:
        return [path for path in results.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except OSError as error:
        raise UserError(f"cannot read {results}: {error.strerror}; choose another place with --results") from error


def find(results: Path, name: str) -> tuple[Path, FolderKind]:
    """Find a folder by its name, by TRIAL/RUN, by a path, or by the end of a name. UserError if none."""
    for path in (results / name, Path(name)):
        if os.path.isdir(path):
            return path, known_kind(path)
    ours = [path for path in folders(results) if kind_of(path) is not None]
    ending = [path for path in ours if path.name.endswith(name)]
    if len(ending) == 1:
        return ending[0], known_kind(ending[0])
    if ending:
        raise UserError(f"{counted(len(ending), 'names')} in {results} end in {name}: {_listed(ending)}; give more")
    close = get_close_matches(name, [path.name for path in ours], n=1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    raise UserError(f"{results} holds no run or trial called {name}{meant}; exchange results list shows what there is")


def _listed(paths: list[Path]) -> str:
    names = sorted(path.name for path in paths)
    return ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
