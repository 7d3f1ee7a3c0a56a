"""What is derived from a run's folder: its result in the terminal, Spark's tables, the page."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.errors import UserError
from experiments.page.run_folder import read_run_folder
from experiments.page.writer import write_page
from experiments.present import show_record
from experiments.seconds import show_seconds


def report(folder: Path, with_spark: bool) -> int:
    """The exit code: 1 where there can be no tables."""
    try:
        run = read_run_folder(folder).run
    except (FileNotFoundError, ValueError) as error:
        raise UserError(f"{folder}: {error}") from error
    finished = (folder / "run.json").exists()
    if finished:
        show_record(run)
    else:
        click.echo(f"{folder} has no run.json: the run was killed, or goes on; the page shows what its spool holds")
    made = show_seconds(folder, quiet=False) if finished and with_spark else True
    click.echo(f"page: {write_page(folder)}")
    return 0 if made else 1
