"""A trial's report: its record of whatever runs are there, its table, its page, its figures as files."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import click
import orjson

from experiments.trials.plan_file import read_plan
from experiments.trials.results import results
from experiments.trials.study import COMPARE, NAGLE, SWEEP
from reports.asked import Asked
from reports.comparison.figures import trial_figures
from reports.comparison.nagle_table import show as show_nagle
from reports.comparison.page import write_page
from reports.comparison.paper_figures import paper_figures
from reports.comparison.table import show
from reports.drawing.canvas import page_style
from reports.drawing.colours import LIGHT
from reports.drawing.figure_files import write_figures
from reports.rows import flat, print_rows, trial_rows
from runs.errors import UserError
from runs.folder import write_json

SHOWN = {COMPARE.name: show, NAGLE.name: show_nagle, SWEEP.name: show}
"""In the terminal, by study."""


def report_trial(folder: Path, asked: Asked) -> int:
    """The exit code. A trial that lacks runs has a report of those that are there, which says so."""
    if asked.hlog:
        raise UserError(f"--hlog is of one run, and {folder} is a trial's folder: give the folder of a run in it")
    record = results(folder, read_plan(folder))
    write_json(folder / "comparison.json", record)
    _show(record, asked)
    for what, path in _written(folder, record, asked).items():
        click.echo(f"{what}: {path}", err=asked.quiet)
    return 0


def _show(record: dict[str, Any], asked: Asked) -> None:
    if asked.as_json:
        click.echo(orjson.dumps(trial_rows(record), option=orjson.OPT_INDENT_2))
    elif asked.as_csv:
        print_rows(map(flat, trial_rows(record)))
    else:
        SHOWN[record["study"]](record)


def _written(folder: Path, record: dict[str, Any], asked: Asked) -> dict[str, Path]:
    """The files, by what they are."""
    made = {"page": write_page(folder, record)}
    if asked.figures:
        with page_style(LIGHT):
            figures = chain(trial_figures(record), paper_figures(record))
            drawn = ((figure.name, figure.title, figure.chart) for figure in figures)
            made["figures"] = write_figures(folder, drawn)
    return made
