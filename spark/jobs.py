"""The jobs: `summarize` is the only call that a run makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark.errors import RunUnreadableError, SparkJobError, TablesUnwritableError
from spark.ingest import IngestReport, ingest
from spark.java import find_java
from spark.java_errors import root_cause
from spark.run_record import RunRecord, read_run
from spark.schemas import KINDS
from spark.session import open_session
from spark.summary.measured import RunFile, measured, runs_table, seconds_table
from spark.tables import tables_folder, write_table

Row = dict[str, Any]


@dataclass(frozen=True)
class Summary:
    """Also in tables/summary.parquet and tables/seconds.parquet; `java_note` is for the user, where there is one."""

    run: Row
    seconds: list[Row]
    java_note: str | None = None
    ingest: IngestReport = field(default_factory=IngestReport)


def summarize(run_folder: Path, master: str = "local[2]", *, write_archive: bool = False) -> Summary:
    """Make the tables of a finished run, and its summary; raises SparkError, a sentence that says what to do."""
    record, java = read_run(run_folder), find_java()
    tables = tables_folder(run_folder)
    with open_session(master, java=java, write_archive=write_archive) as spark, typed_errors(run_folder):
        report = ingest(spark, run_folder / "spool", tables)
        run, seconds = write_summary(spark, tables, record)
    return Summary(run, seconds, java.note, report)


def write_summary(spark: SparkSession, tables: Path, record: RunRecord) -> tuple[Row, list[Row]]:
    """The two summary tables, from the tables of the kinds."""
    rows = measured(spark, _files(tables, record), [record]).persist()
    try:
        written = []
        for name, table in (("summary", runs_table(rows)), ("seconds", seconds_table(rows))):
            write_table(table, tables / f"{name}.parquet")
            written.append([row.asDict() for row in table.collect()])
    finally:
        rows.unpersist()
    (run,), seconds = written
    return run, seconds


def _files(tables: Path, record: RunRecord) -> dict[str, RunFile]:
    return {f"file:{(tables / kind).resolve()}.parquet": RunFile(record, kind) for kind in KINDS}


@contextmanager
def typed_errors(run_folder: Path | str) -> Iterator[None]:
    """A sentence in place of a Java stack trace."""
    try:
        yield
    except (PySparkException, Py4JError, pa.ArrowException, OSError) as failure:
        cause = root_cause(failure)
        if "No space left on device" in cause or "Disk quota exceeded" in cause:
            raise TablesUnwritableError(
                f"the disk filled up while Spark analysed {run_folder}: make room, then analyse the run again"
            ) from failure
        if "Permission denied" in cause or "Read-only file system" in cause:
            raise RunUnreadableError(
                f"Spark may not use all of {run_folder} ({cause}): check its permissions"
            ) from failure
        raise SparkJobError(f"Spark could not analyse {run_folder}: {cause}") from failure
