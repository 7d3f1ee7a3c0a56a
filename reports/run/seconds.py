"""Spark's tables at the end of a run, and the one of its seconds in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from exchange.seconds import is_full

MOST_ROWS = 12


def show_seconds(folder: Path, quiet: bool) -> bool:
    """Let Spark make the tables; whether it could. A run without tables is still a run, so the reason is a warning."""
    from spark.errors import SparkError
    from spark.jobs import summarize

    try:
        summary = summarize(folder)
    except SparkError as error:
        click.echo(f"no tables: {error}", err=True)
        return False
    if summary.java_note:
        click.echo(summary.java_note, err=True)
    if not quiet:
        Console(width=78, highlight=False).print(_table(summary.seconds))
        click.echo(f"tables: {folder / 'tables'}")
    return True


COLUMNS = {
    "second": ("second", "{:,}"),
    "offered/s": ("offered_orders_per_s", "{:,.0f}"),
    "orders/s": ("orders_per_s", "{:,.0f}"),
    "p50 us": ("handed_over_p50_us", "{:,.0f}"),
    "p99 us": ("handed_over_p99_us", "{:,.0f}"),
    "max us": ("handed_over_max_us", "{:,.0f}"),
    "lag p99": ("lag_p99_us", "{:,.0f}"),
    "gateway": ("gateway_cpu_cores", "{:.2f}"),
    "engine": ("engine_cpu_cores", "{:.2f}"),
}
"""Of seconds.parquet: the title here, the column there, how it is written. The last two are cores in use."""


def _table(seconds: list[dict[str, Any]]) -> Table:
    """Every second, or the first and the last few of a long run."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for title in COLUMNS:
        table.add_column(title, justify="right")
    seconds = _without_a_thin_end(seconds)
    shown = seconds if len(seconds) <= MOST_ROWS else [*seconds[: MOST_ROWS // 2], {}, *seconds[-MOST_ROWS // 2 :]]
    for row in shown:
        table.add_row(*(_cell(row, column, form) for column, form in COLUMNS.values()))
    return table


def _without_a_thin_end(seconds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The times of a handful of orders in the last moment are no second's."""
    counts = [row["handed_over_count"] or 0 for row in seconds]
    if not counts or is_full(counts[-1], [count for count in counts[:-1] if count]):
        return seconds
    last = {column: None if column.startswith(("handed_over_", "lag_")) else v for column, v in seconds[-1].items()}
    return [*seconds[:-1], last]


def _cell(row: dict[str, Any], column: str, form: str) -> str:
    if not row:
        return "..."
    value = row[column]
    return "-" if value is None else form.format(value)
