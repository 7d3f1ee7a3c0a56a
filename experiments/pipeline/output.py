"""The output of the commands: which runs went into the tables, and the arms of every experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import click
from pyspark.sql import SparkSession
from rich.text import Text

from exchange.words import counted
from reports.tables import FoldingTable, key, plain_table, terminal
from spark.dataset.folder import DatasetFolder
from spark.dataset.ingesting import RunSource
from spark.dataset.manifest import Manifest
from spark.dataset.summarizing import read_files

MOST_REASONS = 5
MOST_ROWS = 40
COLUMNS = {
    "offered/s": ("offered_orders_per_s", "{:,.0f}"),
    "runs": ("repeats", "{}"),
    "orders/s": ("orders_per_s", "{:,.0f}"),
    "mean us": ("handed_over_mean_us", "{:,.0f}"),
    "p50 due": ("due_p50_us", "{:,.0f}"),
    "p99 due": ("due_p99_us", "{:,.0f}"),
    "CPU s/M": ("cpu_s_per_million", "{:.1f}"),
}
"""By title in the terminal: the column in the table of arms, and its format."""


def print_ingest(new: Sequence[RunSource], after: Manifest, left_out: Mapping[str, str], url: str) -> None:
    """Print which runs went in, which did not and why, and how many lines are in quarantine."""
    names = {(source.record.experiment, source.record.run) for source in new}
    for reason in list(left_out.values())[:MOST_REASONS]:
        click.echo(f"left out: {reason}", err=True)
    if len(left_out) > MOST_REASONS:
        click.echo(f"left out: {len(left_out) - MOST_REASONS} more", err=True)
    for run in after.runs:
        for problem, unread in run.unread.items() if run.name in names else ():
            click.echo(f"{run.record.run}: {counted(unread.lines, 'lines')} in quarantine, {problem}", err=True)
    rows = sum(sum(run.rows.values()) for run in after.runs if run.name in names)
    click.echo(f"{counted(len(names), 'runs')} went in, {rows:,} records; {len(after.runs)} are there")
    click.echo(f"tables: {url}")


def print_summary(spark: SparkSession, folder: DatasetFolder, manifest: Manifest, as_json: bool) -> None:
    """Print a row an arm; with `as_json` all columns of the table of arms."""
    rows = [row.asDict() for row in read_files(spark, folder, manifest.summary["arms"]).collect()]
    if as_json:
        click.echo(json.dumps({"tables": folder.url, "runs": len(manifest.runs), "arms": rows}, indent=2))
        return
    terminal().print(_table(rows[:MOST_ROWS]))
    if len(rows) > MOST_ROWS:
        click.echo(f"... and {len(rows) - MOST_ROWS} more arms in the table")
    click.echo(f"medians of {counted(len(manifest.runs), 'runs')}; tables: {folder.url}")


def _table(rows: list[dict[str, Any]]) -> FoldingTable:
    """Group the rows by experiment, in their order; an arm's name is its transport and its settings."""
    table = plain_table(key("arm"), *COLUMNS, gap=1)
    for experiment, arms in groupby(rows, lambda row: row["experiment"]):
        table.add_row(Text(experiment, "bold"))
        for arm in arms:
            name = f"  {arm['transport']} {arm['arm']}".rstrip()
            cells = ("-" if arm[column] is None else form.format(arm[column]) for column, form in COLUMNS.values())
            table.add_row(Text(name), *cells)
    return table
