"""The tables of a dataset as views of a session, by name: what SQL sees of all runs."""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from spark.dataset.folder import TablesFolder
from spark.dataset.replacing import refuse_older
from spark.dataset.runs import RUNS
from spark.errors import BadQueryError, DatasetUnreadableError
from spark.tables.schemas import KEYS

EVENTS = {"orders", "trades", "confirmations", "quotes"}
WITHOUT_RUNS = {*EVENTS, "live"}
"""A simulation makes events, and a follower its rows, without a table of runs."""
LOOKING = re.compile(r"\s*(--[^\r\n\\]*\n\s*)*(show|describe|desc|explain)\b", re.IGNORECASE)
"""The beginnings of statements that change nothing and are no queries."""
END = re.compile(r"(;\s*(--.*\s*)*)?$")


def create_views(spark: SparkSession, folder: TablesFolder) -> list[str]:
    """Name every table that has rows; return the names.

    DatasetUnreadableError if there are no runs, no simulation and no live rows, or if tables have an older layout.
    """
    refuse_older(folder)
    tables = [name for name in folder.names() if not name.startswith(".") and folder.files(name)]
    if not (WITHOUT_RUNS | {RUNS}).intersection(tables):
        raise DatasetUnreadableError(
            f"no runs have tables at {folder.url}: make them first, with exchange spark ingest"
        )
    # A run may be called 0042, and that is no number.
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    for name in tables:
        rows = spark.read.parquet(folder.pattern(name))
        keys = [key for key in KEYS if key in rows.columns]
        rows.select(*keys, *(column for column in rows.columns if column not in keys)).createOrReplaceTempView(name)
    return tables


def query(spark: SparkSession, sql: str) -> DataFrame:
    """Return the rows of one statement that only reads, and read none of them yet.

    BadQueryError, a sentence, if the statement does not parse, names what is not there, or would write.
    """
    try:
        if not _reads(spark, sql):
            raise BadQueryError(
                "this SQL would write; exchange spark sql takes what only reads: SELECT, WITH, SHOW, DESCRIBE"
            )
        rows = spark.sql(sql)
        _ = rows.schema  # Spark Connect looks for tables and columns only now
        return rows
    except ParseException as error:
        raise BadQueryError(f"this SQL does not parse: {_first_line(error)}") from error
    except AnalysisException as error:
        raise BadQueryError(_what_there_is(spark, error)) from error


def _reads(spark: SparkSession, sql: str) -> bool:
    """True if it looks, or is a query: only a query can stand in brackets. ParseException if it is no SQL."""
    if LOOKING.match(sql):
        return True
    try:
        spark.sql(f"SELECT * FROM (\n{END.sub('', sql, count=1)}\n)")
    except ParseException:
        spark.sql(f"EXPLAIN {sql}")
        return False
    return True


def _what_there_is(spark: SparkSession, error: AnalysisException) -> str:
    """Name the tables if one is unknown, and the columns that Spark proposes if a column is."""
    condition = error.getCondition() or ""
    about = error.getMessageParameters() or {}
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        there = ", ".join(sorted(str(row.viewName) for row in spark.sql("SHOW VIEWS").collect()))
        return f"there is no table {_plain(about['relationName'])}; there are: {there}{_makers(there)}"
    if condition.startswith("UNRESOLVED_COLUMN.WITH_SUGGESTION"):
        return f"there is no column {_plain(about['objectName'])}; near it are: {_plain(about['proposal'])}"
    return f"this SQL cannot be answered: {_first_line(error)}"


def _makers(there: str) -> str:
    """Name the commands that make the tables which are not there."""
    summary = "" if "summary" in there else "; exchange spark summary makes summary, seconds, arms and comparison"
    events = (
        "" if "trades" in there else "; exchange spark ingest --events makes orders, trades, confirmations and quotes"
    )
    return summary + events


def _plain(names: str) -> str:
    return names.replace("`", "")


def _first_line(error: AnalysisException) -> str:
    """Return Spark's own sentence, without its code and what stands below."""
    return re.sub(r"^\[[A-Z_.0-9]+\] ", "", str(error).strip().splitlines()[0]).split(" SQLSTATE:")[0]
