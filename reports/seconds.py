"""The seconds of a run as rows of a table in the terminal; Spark makes the rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from exchange.seconds import is_full
from reports.formats import ABSENT
from reports.tables import FoldingTable, key, plain_table, terminal

Row = Mapping[str, Any]

COLUMNS = {
    "second": ("second", "{:,}"),
    "offered/s": ("offered_orders_per_s", "{:,.0f}"),
    "orders/s": ("orders_per_s", "{:,.0f}"),
    "answered": ("orders_answered", "{:,}"),
    "p50 us": ("{clock}_p50_us", "{:,.0f}"),
    "p99 us": ("{clock}_p99_us", "{:,.0f}"),
    "max us": ("{clock}_max_us", "{:,.0f}"),
    "lag p99": ("lag_p99_us", "{:,.0f}"),
    "gateway": ("gateway_cpu_cores", "{:.2f}"),
    "engine": ("engine_cpu_cores", "{:.2f}"),
}
"""By title: the column of Spark's table, and the format of its values. The last two are cores in use."""
OF_A_RUN = [title for title in COLUMNS if title != "answered"]
MOST_ROWS = 12


def cells(row: Row, clock: str, titles: Collection[str]) -> Iterator[str]:
    """The figures under these titles; completion times are those of `clock`."""
    for column, form in (COLUMNS[title] for title in titles):
        value = row[column.format(clock=clock)]
        yield ABSENT if value is None else form.format(value)


def show_seconds(folder: Path, quiet: bool) -> bool:
    """Have Spark make a run's tables, and print that of its seconds unless `quiet`.

    False if Spark could not. A run without tables is still a run, so the reason is only a warning.
    """
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
        terminal().print(_table(summary.seconds))
        click.echo(f"tables: {folder / 'tables'}")
    return True


def _table(seconds: list[dict[str, Any]]) -> FoldingTable:
    """Every second, or the first and the last few of a long run."""
    table = plain_table(*(key(title, from_right=True) for title in OF_A_RUN[:1]), *OF_A_RUN[1:], gap=1)
    rows = [list(cells(row, "handed_over", OF_A_RUN)) for row in _without_a_thin_end(seconds)]
    if len(rows) > MOST_ROWS:
        rows[MOST_ROWS // 2 : -MOST_ROWS // 2] = [["..."] * len(OF_A_RUN)]
    for row in rows:
        table.add_row(*row)
    return table


def _without_a_thin_end(seconds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the times of the last second if it holds a handful of orders only."""
    counts = [row["handed_over_count"] or 0 for row in seconds]
    if not counts or is_full(counts[-1], [count for count in counts[:-1] if count]):
        return seconds
    last = {column: None if column.startswith(("handed_over_", "lag_")) else v for column, v in seconds[-1].items()}
    return [*seconds[:-1], last]
