"""The tables of a dataset as views of a session, by name: what SQL sees of all runs."""

from __future__ import annotations

import re
from typing import Any, cast

from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from spark.dataset.folder import DatasetFolder
from spark.dataset.ingesting import QUARANTINE
from spark.dataset.manifest import Manifest
from spark.errors import BadQueryError, DatasetUnreadableError
from spark.tables.files import escaped
from spark.tables.schemas import KEYS, KINDS

LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
LOOKING = ("Show", "Describe", "Explain")
"""The commands among SQL's statements that change nothing, by the beginnings of their plans' names in Spark."""


def create_views(spark: SparkSession, folder: DatasetFolder, manifest: Manifest) -> list[str]:
    """Name every table that has rows, and return the names. DatasetUnreadableError if there is no run."""
    if not manifest.runs:
        raise DatasetUnreadableError(
            f"no runs have tables at {folder.url}: make them first, with exchange spark ingest"
        )
    # A run may be called 0042, and that is no number.
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    by_run = {kind: files for kind in (*KINDS, QUARANTINE) if (files := manifest.files(kind))}
    for kind, files in by_run.items():
        rows = _read(spark.read.option("basePath", folder.path(kind)), folder, files)
        others = [name for name in rows.columns if name not in (*KEYS, "ingest")]
        rows.select(*KEYS, *others).createOrReplaceTempView(kind)
    for name, files in manifest.summary.items():
        _read(spark.read, folder, files).createOrReplaceTempView(name)
    return sorted([*by_run, *manifest.summary])


def _read(reader: DataFrameReader, folder: DatasetFolder, files: list[str]) -> DataFrame:
    return reader.parquet(*(escaped(folder.path(file)) for file in files))


def query(spark: SparkSession, sql: str) -> DataFrame:
    """Return the rows of one statement that only reads, and read none of them yet.

    BadQueryError, a sentence, if the statement does not parse, names what is not there, or would write.
    """
    try:
        if _writes(spark, sql):
            raise BadQueryError(
                "this SQL would write; exchange spark sql takes what only reads: SELECT, WITH, SHOW, DESCRIBE"
            )
        return spark.sql(sql)
    except ParseException as error:
        raise BadQueryError(f"this SQL does not parse: {_first_line(error)}") from error
    except AnalysisException as error:
        raise BadQueryError(_what_there_is(spark, error)) from error


def _writes(spark: SparkSession, sql: str) -> bool:
    plan = cast(Any, spark)._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    kind, gateway = str(plan.getClass().getSimpleName()), cast(Any, spark.sparkContext._gateway)
    is_statement = any(is_instance_of(gateway, plan, f"{LOGICAL}.{name}") for name in ("Command", "ParsedStatement"))
    return (is_statement and not kind.startswith(LOOKING)) or "InsertIntoStatement" in str(plan.toString())


def _what_there_is(spark: SparkSession, error: AnalysisException) -> str:
    """Name the tables if one is unknown, and the columns that Spark proposes if a column is."""
    condition, about = error.getCondition() or "", error.getMessageParameters() or {}
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        there = ", ".join(sorted(str(row.viewName) for row in spark.sql("SHOW VIEWS").collect()))
        return f"there is no table {_plain(about['relationName'])}; there are: {there}{_of_summary(there)}"
    if condition.startswith("UNRESOLVED_COLUMN.WITH_SUGGESTION"):
        return f"there is no column {_plain(about['objectName'])}; near it are: {_plain(about['proposal'])}"
    return f"this SQL cannot be answered: {_first_line(error)}"


def _of_summary(there: str) -> str:
    return "" if "summary" in there else "; exchange spark summary makes summary, seconds, arms and comparison"


def _plain(names: str) -> str:
    return names.replace("`", "")


def _first_line(error: AnalysisException) -> str:
    """Return Spark's own sentence, without its code and what stands below."""
    return re.sub(r"^\[[A-Z_.0-9]+\] ", "", str(error).strip().splitlines()[0]).split(" SQLSTATE:")[0]
