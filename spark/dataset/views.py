"""The tables of a dataset as views of a session, by name: what SQL sees of all runs."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import SparkSession

from spark.dataset.folder import TablesFolder
from spark.dataset.runs import RUNS, refuse_older, refuse_older_columns
from spark.errors import DatasetUnreadableError
from spark.tables.schemas import EVENTS, KEYS

WITHOUT_RUNS = {*EVENTS, "live"}
"""Tables that can stand without a table of runs: a simulation makes events, a follower makes live rows."""


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
        refuse_older_columns(name, rows.columns, folder.url)
        keys = [key for key in KEYS if key in rows.columns]
        other_columns = [column for column in rows.columns if column not in keys]
        rows.select(*keys, *other_columns).createOrReplaceTempView(name)
    return names
