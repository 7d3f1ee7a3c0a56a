"""A run's report: its result in the terminal, Spark's tables, the page, its figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from exchange.run_record import RunRecord
from reports.asked import Asked
from reports.drawing.canvas import page_style
from reports.drawing.colours import LIGHT
from reports.drawing.figure_files import write_figures
from reports.rows import print_rows, run_row
from reports.run.figures import run_figures
from reports.run.hlog import FILE, write_hlog
from reports.run.page import write_page
from reports.run.run_folder import RunFolder, read_run_folder
from reports.run.seconds import show_seconds
from reports.run.terminal import show_record
from runs.errors import UserError
from runs.record.reading import record_for_report


def report_run(folder: Path, asked: Asked) -> int:
    """The exit code: 1 where there can be no tables."""
    finished = (folder / "run.json").exists()
    if asked.quiet and not finished:
        raise UserError(f"{folder} has no run.json, so there is no record to print: leave out --json and --csv")
    record = record_for_report(folder / "run.json", RunRecord) if finished else {}
    known = read_run_folder(folder)
    _show(folder, record, asked)
    made = show_seconds(folder, quiet=asked.quiet) if finished and asked.with_spark else True
    for what, path in _written(folder, known, asked).items():
        click.echo(f"{what}: {path}", err=asked.quiet)
    return 0 if made else 1


def _show(folder: Path, record: dict[str, Any], asked: Asked) -> None:
    if asked.as_json:
        click.echo((folder / "run.json").read_bytes(), nl=False)
    elif asked.as_csv:
        print_rows([run_row(record)])
    elif record:
        show_record(record)
    else:
        click.echo(f"{folder} has no run.json: the run was killed, or goes on; the page shows what its spool holds")


def _written(folder: Path, known: RunFolder, asked: Asked) -> dict[str, Path]:
    """The files, by what they are."""
    made = {"page": write_page(folder, known)}
    if asked.hlog:
        made["HdrHistogram log"] = write_hlog(folder / FILE, known)
    if asked.figures:
        with page_style(LIGHT):
            made["figures"] = write_figures(folder, run_figures(known))
    return made
