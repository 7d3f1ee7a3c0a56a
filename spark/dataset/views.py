"""The tables of a dataset as views of a session, by name: what SQL sees of all runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from spark.dataset.folder import TablesFolder
from spark.dataset.ingesting import EVENTS
from spark.dataset.replacing import refuse_older
from spark.dataset.runs import RUNS, check_columns
from spark.errors import BadQueryError, DatasetUnreadableError
from spark.tables.schemas import KEYS

WITHOUT_RUNS = {*EVENTS, "live"}
"""Tables that can stand without a table of runs: a simulation makes events, a follower makes live rows."""
DESCRIBING_STATEMENT = re.compile(r"\s*(--[^\r\n\\]*\n\s*)*(show|describe|desc|explain)\b", re.IGNORECASE)
"""The beginnings of statements that change nothing and are no queries, behind comments."""
END_OF_STATEMENT = re.compile(r"(;\s*(--.*\s*)*)?$")
"""A semicolon with comments behind it, or nothing."""


def tables_in(folder: TablesFolder) -> list[str]:
    """Return the names of all tables that have rows.

    DatasetUnreadableError if there are no runs, no simulation and no live rows, or if tables have an older layout.
    """
    refuse_older(folder)
    tables = [name for name in folder.names() if not name.startswith(".") and folder.files(name)]
    if not (WITHOUT_RUNS | {RUNS}).intersection(tables):
        raise DatasetUnreadableError(
            f"no runs have tables at {folder.url}: make them first, with exchange spark ingest"
        )
    return tables


def create_views(spark: SparkSession, folder: TablesFolder, tables: Iterable[str] | None = None) -> list[str]:
    """Make a view of each of these tables, or of all that have rows; return their names.

    Each takes a moment, in which Spark reads the table's columns. DatasetUnreadableError as from `tables_in`, or if an
    older version made the tables.
    """
    names = tables_in(folder) if tables is None else list(tables)
    # A run may be called 0042, and that is no number.
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    for name in names:
        rows = spark.read.parquet(folder.pattern(name))
        check_columns(name, rows.columns, folder.url)
        keys = [key for key in KEYS if key in rows.columns]
        other_columns = [column for column in rows.columns if column not in keys]
        rows.select(*keys, *other_columns).createOrReplaceTempView(name)
    return names


def query(spark: SparkSession, sql: str, tables: Collection[str]) -> DataFrame:
    """Return the rows of one statement that only reads, and read none of them yet. `tables` are all that there are.

    BadQueryError, a sentence, if the statement does not parse, names what is not there, or would write.
    """
    with bad_queries(tables):
        if not _reads(spark, sql):
            raise BadQueryError(
                "this SQL would write; exchange spark sql takes what only reads: SELECT, WITH, SHOW, DESCRIBE"
            )
        rows = spark.sql(sql)
        _ = rows.schema  # Spark Connect looks for tables and columns only now
        return rows


@contextmanager
def bad_queries(tables: Collection[str]) -> Iterator[None]:
    """Raise BadQueryError, a sentence, if a statement does not parse, or names what is not there."""
    try:
        yield
    except ParseException as error:
        raise BadQueryError(f"this SQL does not parse: {_first_line(error)}") from error
    except AnalysisException as error:
        raise BadQueryError(_what_there_is(tables, error)) from error


def _reads(spark: SparkSession, sql: str) -> bool:
    """Return whether a statement only reads. ParseException if it is no SQL.

    Only a query can stand in brackets.
    """
    if DESCRIBING_STATEMENT.match(sql):
        return True
    query_text = END_OF_STATEMENT.sub("", sql, count=1)
    try:
        spark.sql(f"SELECT * FROM (\n{query_text}\n)")
    except ParseException:
        spark.sql(f"EXPLAIN {sql}")
        return False
    return True


def _what_there_is(names: Collection[str], error: AnalysisException) -> str:
    """Return a sentence with the names of all tables if one is unknown, or with the columns that Spark proposes."""
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        unknown = _without_backticks(parameters["relationName"])
        tables = sorted(names)
        return f"there is no table {unknown}; there are: {', '.join(tables)}{_commands_for_missing(tables)}"
    if condition.startswith("UNRESOLVED_COLUMN.WITH_SUGGESTION"):
        unknown = _without_backticks(parameters["objectName"])
        return f"there is no column {unknown}; near it are: {_without_backticks(parameters['proposal'])}"
    return f"this SQL cannot be answered: {_first_line(error)}"


def _commands_for_missing(tables: list[str]) -> str:
    """Return clauses with the commands that make the tables which are missing."""
    clauses = ""
    if "summary" not in tables:
        clauses += "; exchange spark summary makes summary, seconds, arms and comparison"
    if "trades" not in tables:
        clauses += "; exchange spark ingest --events makes orders, trades, confirmations and quotes"
    return clauses


def _without_backticks(names: str) -> str:
    return names.replace("`", "")


def _first_line(error: AnalysisException) -> str:
    """Return the first line of Spark's message, without the error's code in front and SQLSTATE at its end."""
    first_line = str(error).strip().splitlines()[0]
    sentence, _, _ = first_line.partition(" SQLSTATE:")
    return re.sub(r"^\[[A-Z_.0-9]+\] ", "", sentence)
