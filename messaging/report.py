"""A benchmark's report: its table, its page, its figures as files; of one that was killed, of what it had measured."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from exchange.json_records import Record
from messaging.figures import figures_of
from messaging.page import write_page
from messaging.reading import read
from messaging.table import show
from reports.asked import Asked
from reports.drawing.canvas import page_style
from reports.drawing.colours import LIGHT
from reports.drawing.figure_files import write_figures
from runs.errors import UserError


def report_bench(folder: Path, asked: Asked) -> int:
    """The exit code."""
    if asked.hlog or asked.as_csv:
        option = "--hlog" if asked.hlog else "--csv"
        raise UserError(f"{option} is of a run, and {folder} is a benchmark's: say --json, or --figures for CSVs")
    record = read(folder)
    if asked.as_json:
        click.echo(orjson.dumps(record, option=orjson.OPT_INDENT_2))
    else:
        show(record)
    for what, path in _written(folder, record, asked).items():
        click.echo(f"{what}: {path}", err=asked.quiet)
    return 0


def _written(folder: Path, record: Record, asked: Asked) -> dict[str, Path]:
    """The files, by what they are."""
    made = {"page": write_page(folder, record)}
    if asked.figures:
        with page_style(LIGHT):
            made["figures"] = write_figures(folder, ((f.name, f.title, f.chart) for f in figures_of(record)))
    return made
