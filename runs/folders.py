"""Which folders are those of runs: one itself, those in it, those of the trials in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from runs.errors import UserError


def run_folders(results: Path) -> list[Path]:
    """By name. UserError where a folder cannot be read; one that is removed meanwhile holds none."""
    try:
        if _is_run(results):
            return [results]
        return [run for path in _inside(results) for run in ([path] if _is_run(path) else _of_trial(path))]
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}; give a folder with runs in it") from error


def runs_begun(results: Path) -> Iterator[Path]:
    """Those with a file in their spool; asked one by one, so that one that begins meanwhile is among them."""
    return (run for run in run_folders(results) if _has_begun(run))


def runs_under_way(results: Path) -> Iterator[Path]:
    """Those, and such as are about to begin: a run that ended without a word has its record all the same."""
    return (run for run in run_folders(results) if _has_begun(run) or not (run / "run.json").exists())


def _has_begun(run: Path) -> bool:
    return any((run / "spool").glob("[!.]*.jsonl"))


def _of_trial(folder: Path) -> list[Path]:
    try:
        return [path for path in _inside(folder) if _is_run(path)]
    except FileNotFoundError:
        return []


def _inside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _is_run(folder: Path) -> bool:
    return any(os.path.exists(folder / mark) for mark in ("run.json", "spool"))
