"""`exchange spark sql`, `bars`, `samples`: a query over the tables of all runs, to the terminal, a pipe or a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pyarrow.csv
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

from exchange.words import counted
from exchange_simulation.experiments.pipeline.jobs import compilers_for, session_for
from exchange_simulation.experiments.pipeline.masters import master_for
from exchange_simulation.experiments.pipeline.row_stream import row_stream
from exchange_simulation.experiments.pipeline.statements import BadQueryError, bad_queries, query
from exchange_simulation.launching.errors import UserError, users_mistake
from exchange_simulation.launching.files import whole_file
from exchange_simulation.reports.formats.numbers import ABSENT
from exchange_simulation.reports.tables import TableColumn, plain_table, terminal
from spark.dataset.folder import TablesFolder
from spark.dataset.folder_of_url import folder_to_read
from spark.dataset.views import create_views, tables_in
from spark.gold.views import create_gold_views, gold_views_over, tables_used
from spark.sessions.master import is_connect
from spark.sessions.settings import with_overrides
from spark.tables.schemas import KEYS

MOST_ROWS = 40
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
"""The beginnings of the names of Spark's types of numbers."""
NAMING_NUMBERS = ("instrument", "start_s", "second")
"""Columns of numbers that name a row, as columns of words do."""
RowsOf = Callable[[SparkSession], DataFrame]
"""Returns the rows of one of our own statements."""
Output = Callable[[DataFrame, str], None]
"""Writes all rows of a query; the text is the master that answers it."""


def sql(statement: str, tables: str, master: str | None, output: Output, *, settings: Mapping[str, str]) -> int:
    """Run one statement, and give its rows to `output`. Returns the exit code.

    UserError if the statement or the tables are wrong.
    """
    with _folder_for(tables, master, settings) as (spark, folder, answering), users_mistake(BadQueryError):
        names = tables_in(folder)
        create_views(spark, folder, tables_used(statement, names))
        create_gold_views(spark, names, statement)
        output(query(spark, statement, [*names, *gold_views_over(names)]), answering)
    return 0


def gold(
    name: str, rows_of: RowsOf, tables: str, master: str | None, output: Output, *, settings: Mapping[str, str]
) -> int:
    """Give the rows of the view `name` to `output`; `rows_of` has its parameters. Returns the exit code.

    UserError if a table is missing.
    """
    with _folder_for(tables, master, settings) as (spark, folder, answering), users_mistake(BadQueryError):
        names = tables_in(folder)
        create_views(spark, folder, tables_used(name, names))
        with bad_queries(names):
            output(rows_of(spark), answering)
    return 0


@contextmanager
def _folder_for(
    tables: str, given_master: str | None, settings: Mapping[str, str]
) -> Iterator[tuple[SparkSession, TablesFolder, str]]:
    """Yield a session, the folder of the tables as it sees it, and the master that answers."""
    master = master_for(tables, given_master, settings)
    if not is_connect(master):  # a served session has its Java already
        settings = with_overrides(compilers_for(tables), settings)
    with session_for(tables, master, settings) as spark:
        yield spark, folder_to_read(spark, master, tables), master


def _check_names(rows: DataFrame) -> None:
    """Raise UserError if two columns have the same name, since a row by name can hold only one of their values."""
    twice = [name for name in rows.columns if rows.columns.count(name) > 1]
    if twice:
        raise UserError(f"two columns are called {twice[0]}: name one of them with AS, or use --csv")


def to_terminal(rows: DataFrame, _master: str) -> None:
    """Print the first rows as a table, and whether there are more. The name of a run that all share is above it."""
    _check_names(rows)
    first = rows.limit(MOST_ROWS + 1).toArrow().to_pylist()
    shared = _shared_by_all(first[:MOST_ROWS])
    table = plain_table(*(column for column in _columns(rows) if column.title not in shared), gap=1)
    for row in first[:MOST_ROWS]:
        table.add_row(*(_cell(value) for name, value in row.items() if name not in shared))
    if shared:
        terminal().print(", ".join(f"{name} {value}" for name, value in shared.items()), markup=False)
    terminal().print(table)
    more = ", and there are more: --csv, --json and --parquet give all" if len(first) > MOST_ROWS else ""
    click.echo(f"{counted(min(len(first), MOST_ROWS), 'rows')}{more}")


def _columns(rows: DataFrame) -> list[TableColumn]:
    """Return the table's columns. Columns before the first figure name a row. Columns of numbers are aligned right."""
    columns = []
    is_after_keys = False
    for name, kind in rows.dtypes:
        is_number = kind.startswith(NUMBERS)
        if is_number and name not in NAMING_NUMBERS:
            is_after_keys = True
        columns.append(TableColumn(name, "figure" if is_after_keys else "key", from_right=is_number))
    return columns


def _shared_by_all(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the experiment and the run that all rows share; empty for one row, or if there are no other columns."""
    if len(rows) < 2 or rows[0].keys() <= set(KEYS):
        return {}
    first = rows[0]
    shared = {}
    for name in KEYS:
        if name in first and all(row[name] == first[name] for row in rows):
            shared[name] = first[name]
    return shared


def _cell(value: Any) -> str:
    """Return a value as the terminal's table shows it; a list is shown by its length."""
    if value is None:
        return ABSENT
    if isinstance(value, list | dict):
        return f"[{counted(len(value), 'values')}]"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return str(value)


def to_csv(rows: DataFrame, master: str) -> None:
    """Write all rows to stdout as CSV, after a line of names. UserError if a column holds lists or structs."""
    lists = [name for name, kind in rows.dtypes if kind.startswith(("array", "struct", "map"))]
    if lists:
        raise UserError(
            f"column {lists[0]} is no single value, which CSV cannot hold: use --json, or explode({lists[0]})"
        )
    with row_stream(rows, master) as stream, pyarrow.csv.CSVWriter(sys.stdout.buffer, stream.schema) as out:
        for batch in stream.batches:
            out.write_batch(batch)


def to_json(rows: DataFrame, master: str) -> None:
    """Write all rows to stdout as JSON, an object on each line."""
    _check_names(rows)
    with row_stream(rows, master) as stream:
        for batch in stream.batches:
            for row in batch.to_pylist():
                click.echo(json.dumps(row, default=str))


def to_parquet(file: Path) -> Output:
    """Return an output that writes all rows to this file at once. UserError if the file cannot be written."""

    def write(rows: DataFrame, master: str) -> None:
        written = 0
        with row_stream(rows, master) as stream:
            try:
                with whole_file(file) as out, pyarrow.parquet.ParquetWriter(out, stream.schema) as parquet:
                    for batch in stream.batches:
                        parquet.write_batch(batch)
                        written += batch.num_rows
            except OSError as error:
                raise UserError(f"--parquet {file} cannot be written: {error.strerror or error}") from error
        click.echo(f"{file}: {counted(written, 'rows')}")

    return write


OUTPUTS: dict[str | None, Output] = {None: to_terminal, "csv": to_csv, "json": to_json}
"""The outputs by the word of the option; None stands for no option."""
