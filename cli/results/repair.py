"""`exchange results repair`: run.json of runs whose launcher died before it could write one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from runs.errors import UserError
from runs.record.begun import left_unfinished, repair


def repair_runs(results: Path, name: str | None) -> None:
    """Repair one run, or all that are left unfinished in the folder; print a line for each."""
    if name is not None:
        _repair(next((path for path in (results / name, Path(name)) if path.is_dir()), results / name))
        return
    if not results.is_dir():
        raise UserError(f"{results} is no folder: choose another one with --results")
    left = list(left_unfinished(results))
    for folder in left:
        _repair(folder)
    if not left:
        click.echo(f"{results}: no run is left unfinished", err=True)


def repair_those_left(folders: Iterable[Path]) -> None:
    """Repair what earlier runs left unfinished, before the next run; say so, and leave alone what cannot be."""
    for folder in folders:
        try:
            _repair(folder, err=True)
        except click.ClickException as error:
            click.echo(f"{folder} is left as it is: {error.message}", err=True)


def _repair(folder: Path, err: bool = False) -> None:
    record = repair(folder)
    reasons = "; ".join(record["reasons"])
    click.echo(f"repaired {folder}: {record['status']}: {reasons}", err=err)
