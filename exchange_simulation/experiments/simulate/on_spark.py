"""A simulation on Spark: a part is a partition, whose executor makes Parquet files and gives them to Spark.

    numbers of instruments ──▶ executors ── MatchPart ──▶ files as bytes ─┬─▶ Spark's writer, to any file system
                                                                         └─▶ rows of instruments, to this process

Spark's Parquet writer takes rows one by one; its writer of text takes a file's bytes as they are, and ends each with
`lineSep`. So we drop the last four bytes of a Parquet file, and `lineSep` puts them back. docs/decisions/0010-spark.md
has the figures.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Mapping

import click
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from exchange_simulation.experiments.simulate.events import (
    WantedEvents,
    WrittenTable,
    hidden_folder,
    refuse_existing,
    rows_in,
)
from exchange_simulation.experiments.simulate.parts import (
    FILES,
    INSTRUMENTS,
    Matched,
    MatchPart,
    OnParts,
    in_order,
    of_files,
)
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.interrupts import beside, ended_as_by_ctrl_c
from spark.dataset.folder import DatasetFolder, dataset_folder
from spark.dataset.replacing import refuse_older
from spark.errors import DatasetUnreadableError, SparkError, SparkUnavailableError
from spark.sessions.cluster import wait_for_executor
from spark.sessions.java import find_java
from spark.sessions.partitions import collect, each_number, finished_partitions, job_errors
from spark.sessions.session import open_session

LOOK_EVERY_S = 1.0
MAGIC = "PAR1"
"""The last bytes of a Parquet file."""
WRITING = {"spark.sql.maxConcurrentOutputFileWriters": "8"}
"""Without it, Spark sorts a part's files by their folders before it writes the first."""
CORES = 2
"""The cores that load their kernels before the clock starts; further ones load them in their first part."""


def match_on_spark(
    master: str, work: MatchPart, parts: int, on_parts: OnParts, tables: str | None, settings: Mapping[str, str]
) -> Matched:
    """Match all parts; events go into `tables`. ClickException if Spark gives up, UserError if there is no Spark."""
    start_s, instruments = time.monotonic(), work.simulation.instruments
    try:
        java = find_java()
        with open_session(master, java=java, settings={**WRITING, **settings}) as spark:
            wait_for_executor(spark)
            collect(each_number(spark, CORES, work.warm_up, FILES, CORES))
            ready_s = time.monotonic()
            with _cancelled_by_signals(), _counting_parts(spark, on_parts):
                files = each_number(spark, instruments, work, FILES, parts)
                if work.events and tables:
                    found, written = _written(spark, files, work.events, tables)
                else:
                    found, written = of_files(collect(files)["content"].to_pylist()), {}
            matching_s = time.monotonic() - ready_s
    except SparkUnavailableError as error:
        raise UserError(str(error)) from error
    except SparkError as error:
        raise click.ClickException(str(error)) from error
    return Matched(found, ready_s - start_s, matching_s, written, tuple(filter(None, [java.note])))


def _written(
    spark: SparkSession, files: DataFrame, events: WantedEvents, tables: str
) -> tuple[pa.Table, dict[str, WrittenTable]]:
    """Write the files; return the rows of all instruments, and what was written by table."""
    with job_errors(f"Spark could not write {tables}"):
        folder = dataset_folder(spark, tables)
        refuse_older(folder)
        refuse_existing(events, tables, [name for name in events.tables if folder.files(f"{name}/{events.folder}")])
        hidden = hidden_folder(events)
        try:
            content = fn.expr(f"substr(content, 1, length(content) - {len(MAGIC)})").cast("string").alias("content")
            rows = files.select("table", "file", content).write.partitionBy("table", "file")
            rows.option("lineSep", MAGIC).option("compression", "none").text(folder.path(f"{hidden}/written"))
            numbers = spark.read.parquet(folder.pattern(f"{hidden}/written/table={INSTRUMENTS}") + "/*/*").toArrow()
            return in_order(numbers), _placed(spark, folder, events)
        finally:
            folder.remove(hidden)


def _placed(spark: SparkSession, folder: DatasetFolder, events: WantedEvents) -> dict[str, WrittenTable]:
    """Number the files of each table, and give each table's folder its name at once. DatasetUnreadableError."""
    hidden, written = hidden_folder(events), {}
    for table in events.tables:
        place, files = f"{table}/{events.folder}", folder.files(f"{hidden}/written/table={table}")
        for number, file in enumerate(files):
            folder.rename(file, f"{hidden}/{place}/part-{number}.parquet")
        rows = sum(rows_in(file.split("/")[-2]) for file in files)
        there = spark.read.parquet(folder.pattern(f"{hidden}/{place}") + "/*").count() if files else 0
        if there != rows:
            raise DatasetUnreadableError(f"{folder.url} holds {there:,} of the {rows:,} rows of {table} written to it")
        written[table] = WrittenTable(len(files), rows, folder.size(f"{hidden}/{place}"))
    for table, about in written.items():
        if about.files:
            folder.rename(f"{hidden}/{table}/{events.folder}", f"{table}/{events.folder}")
    return written


def _cancelled_by_signals() -> contextlib.AbstractContextManager[None]:
    """Let signals call pyspark's own handler, which cancels the job; otherwise we would wait for the job's end."""
    handler = signal.getsignal(signal.SIGINT)
    return ended_as_by_ctrl_c(handler) if callable(handler) else contextlib.nullcontext()


def _counting_parts(spark: SparkSession, on_parts: OnParts) -> contextlib.AbstractContextManager[None]:
    """Report the most parts that were finished so far, once a second, from a thread; later jobs have fewer parts."""

    def look(is_over: threading.Event) -> None:
        most = 0
        while not is_over.wait(LOOK_EVERY_S):
            on_parts(most := max(most, finished_partitions(spark)))

    return beside(look)
