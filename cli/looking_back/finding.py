"""From what a user calls a run or a trial to its folder."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

from cli.looking_back.kinds import Kind, kind_of, known_kind
from exchange.words import counted
from runs.errors import UserError

MOST_TOLD = 5


def folders(results: Path) -> list[Path]:
    """UserError where there is no such directory, or none that may be read."""
    try:
        return [path for path in results.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except OSError as error:
        raise UserError(f"cannot read {results}: {error.strerror}; choose another place with --results") from error


def find(results: Path, name: str) -> tuple[Path, Kind]:
    """By a folder's name, a run's within a trial, a path, or how one name alone ends. UserError where it is none."""
    for path in (results / name, Path(name)):
        if os.path.isdir(path):
            return path, known_kind(path)
    there = [path for path in folders(results) if kind_of(path) is not None]
    ending = [path for path in there if path.name.endswith(name)]
    if len(ending) == 1:
        return ending[0], known_kind(ending[0])
    if ending:
        raise UserError(f"{counted(len(ending), 'names')} in {results} end in {name}: {_listed(ending)}; give more")
    near = get_close_matches(name, [path.name for path in there], n=1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    raise UserError(f"{results} holds no run or trial called {name}{meant}; exchange results list shows what there is")


def _listed(paths: list[Path]) -> str:
    names = sorted(path.name for path in paths)
    return ", ".join(names[:MOST_TOLD]) + (", ..." if len(names) > MOST_TOLD else "")
