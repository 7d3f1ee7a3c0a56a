"""The output of the commands: which runs went into the tables, and the arms of every experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import click
from pyspark.sql import SparkSession
from rich.text import Text

from exchange.words import counted
from reports.tables import FoldingTable, key, plain_table, terminal
from spark.dataset.folder import DatasetFolder
from spark.dataset.ingesting import Ingested
from spark.dataset.summarizing import read_table

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


def print_ingest(ingested: Ingested, left_out: Mapping[str, str], url: str) -> None:
    """Print how many runs went in, which did not and why, and how many lines are in quarantine."""
    for reason in list(left_out.values())[:MOST_REASONS]:
        click.echo(f"left out: {reason}", err=True)
    if len(left_out) > MOST_REASONS:
        click.echo(f"left out: {len(left_out) - MOST_REASONS} more", err=True)
    for (_, run), problems in sorted(ingested.unread.items()):
        for problem, unread in problems.items():
            click.echo(f"{run}: {counted(unread.lines, 'lines')} in quarantine, {problem}", err=True)
    click.echo(f"{counted(ingested.new_runs, 'runs')} went in, {ingested.records:,} records; {ingested.runs} are there")
    click.echo(f"tables: {url}")


def print_summary(spark: SparkSession, folder: DatasetFolder, runs: int, as_json: bool) -> None:
    """Print a row an arm; with `as_json` all columns of the table of arms."""
    rows = [row.asDict() for row in read_table(spark, folder, "arms").collect()]
    if as_json:
        click.echo(json.dumps({"tables": folder.url, "runs": runs, "arms": rows}, indent=2))
        return
    terminal().print(_table(rows[:MOST_ROWS]))
    if len(rows) > MOST_ROWS:
        click.echo(f"... and {len(rows) - MOST_ROWS} more arms in the table")
    click.echo(f"medians of {counted(runs, 'runs')}; tables: {folder.url}")


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
