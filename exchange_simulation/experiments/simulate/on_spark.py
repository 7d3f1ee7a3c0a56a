"""A simulation on Spark: executors match its partitions into whole Parquet files, and Spark writes these.

    numbers of instruments ──▶ executors ── MatchPartition ──▶ files as bytes ─┬─▶ Spark's writer, to any file system
                                                                              └─▶ rows of instruments, to this process

Spark's text writer writes the files. It writes the bytes of a row unchanged and `lineSep` after each row. So the last
four bytes of each Parquet file are removed, and `lineSep` adds them again. Spark's Parquet writer takes single rows and
is slower: docs/decisions/0010-spark.md has the figures.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Mapping
from types import FrameType

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
from exchange_simulation.experiments.simulate.executors import collect, each_number, finished_partitions, job_errors
from exchange_simulation.experiments.simulate.partitions import (
    FILES,
    INSTRUMENTS,
    Matched,
    MatchPartition,
    OnPartitions,
    rows_of_files,
    sorted_rows,
)
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.interrupts import (
    ENDING_SIGNALS,
    SignalReceived,
    in_background,
    signals_handled_by,
)
from spark.dataset.folder import DatasetFolder
from spark.dataset.folder_of_url import dataset_folder
from spark.dataset.replacing import refuse_object_stores
from spark.dataset.runs import refuse_older
from spark.errors import DatasetUnreadableError, SparkError, SparkUnavailableError
from spark.sessions.cluster import wait_for_executor
from spark.sessions.java import find_java
from spark.sessions.session import open_session

MAGIC = "PAR1"
"""The last bytes of a Parquet file."""
WRITING = {"spark.sql.maxConcurrentOutputFileWriters": "8"}
"""With this setting, Spark writes each file when it comes, and does not sort a partition's files by folder first."""
CORES = 2
"""The number of cores that load their kernels before the clock starts; others load them in their first partition."""
LOOK_EVERY_S = 1.0
"""The time between two reports of the number of finished partitions."""


def match_on_spark(
    master: str,
    work: MatchPartition,
    partitions: int,
    on_partitions: OnPartitions,
    tables: str | None,
    settings: Mapping[str, str],
) -> Matched:
    """Match all partitions, and write events into `tables`.

    ClickException if Spark fails, UserError without a Spark.
    """
    start_s = time.monotonic()
    instruments = work.simulation.instruments
    written: dict[str, WrittenTable] = {}
    try:
        java = find_java()
        with open_session(master, java=java, settings={**WRITING, **settings}) as spark:
            wait_for_executor(spark)
            collect(each_number(spark, CORES, work.warm_up, FILES, CORES))
            ready_s = time.monotonic()
            with _cancelled_by_signals(), _counting_partitions(spark, on_partitions):
                files = each_number(spark, instruments, work, FILES, partitions)
                if work.events and tables:
                    rows, written = _write(spark, files, work.events, tables)
                else:
                    rows = rows_of_files(collect(files)["content"].to_pylist())
            matching_s = time.monotonic() - ready_s
    except SparkUnavailableError as error:
        raise UserError(str(error)) from error
    except SparkError as error:
        raise click.ClickException(str(error)) from error
    return Matched(
        rows=rows,
        start_up_s=ready_s - start_s,
        matching_s=matching_s,
        written=written,
        notes=(java.note,) if java.note else (),
    )


def _write(
    spark: SparkSession, files: DataFrame, events: WantedEvents, tables: str
) -> tuple[pa.Table, dict[str, WrittenTable]]:
    """Write the files; return the rows of all instruments, and the size of each table that was written."""
    with job_errors(f"Spark could not write {tables}"):
        folder = dataset_folder(spark, tables)
        refuse_object_stores(folder)
        refuse_older(folder)
        tables_with_run = [name for name in events.tables if folder.files(f"{name}/{events.folder}")]
        refuse_existing(events, tables, tables_with_run)
        hidden = hidden_folder(events)
        try:
            without_magic = fn.expr(f"substr(content, 1, length(content) - {len(MAGIC)})")
            content = without_magic.cast("string").alias("content")
            writer = files.select("table", "file", content).write.partitionBy("table", "file")
            writer.option("lineSep", MAGIC).option("compression", "none").text(folder.path(f"{hidden}/written"))
            files_of_rows = folder.pattern(f"{hidden}/written/table={INSTRUMENTS}") + "/*/*"
            rows = sorted_rows(spark.read.parquet(files_of_rows).toArrow())
            return rows, _move_into_tables(spark, folder, events)
        finally:
            folder.remove(hidden)


def _move_into_tables(spark: SparkSession, folder: DatasetFolder, events: WantedEvents) -> dict[str, WrittenTable]:
    """Number the files of each table, check their rows, and move each table's folder to its place as a whole.

    Returns the size of each table. DatasetUnreadableError if rows are missing.
    """
    hidden = hidden_folder(events)
    written = {}
    for table in events.tables:
        run_folder = f"{table}/{events.folder}"
        files = folder.files(f"{hidden}/written/table={table}")
        for number, file in enumerate(files):
            folder.rename(file, f"{hidden}/{run_folder}/part-{number}.parquet")
        # Spark wrote each file to .../table=TABLE/file=PARTITION-NUMBER-ROWS/NAME.
        rows = sum(rows_in(file.split("/")[-2]) for file in files)
        readable_rows = 0
        if files:
            readable_rows = spark.read.parquet(folder.pattern(f"{hidden}/{run_folder}") + "/*").count()
        if readable_rows != rows:
            raise DatasetUnreadableError(
                f"{folder.url} holds {readable_rows:,} of the {rows:,} rows of {table} written to it"
            )
        written[table] = WrittenTable(files=len(files), rows=rows, bytes=folder.size(f"{hidden}/{run_folder}"))
    for table, size in written.items():
        if size.files:
            folder.rename(f"{hidden}/{table}/{events.folder}", f"{table}/{events.folder}")
    return written


def _cancelled_by_signals() -> contextlib.AbstractContextManager[None]:
    """Let signals call pyspark's handler, which cancels the job. Otherwise a signal takes effect at the job's end.

    pyspark's handler raises KeyboardInterrupt; the signal's number is added to it.
    """
    cancel_job = signal.getsignal(signal.SIGINT)
    if not callable(cancel_job):
        return contextlib.nullcontext()

    def cancel(number: int, frame: FrameType | None) -> None:
        try:
            cancel_job(number, frame)
        except KeyboardInterrupt as error:
            raise SignalReceived(signal.Signals(number)) from error

    return signals_handled_by(ENDING_SIGNALS, cancel)


def _counting_partitions(spark: SparkSession, on_partitions: OnPartitions) -> contextlib.AbstractContextManager[None]:
    """Report the number of finished partitions once a second, from a thread.

    The number never falls: the jobs that later check the files have fewer partitions, and are not counted.
    """

    def report(is_over: threading.Event) -> None:
        most_finished = 0
        while not is_over.wait(LOOK_EVERY_S):
            most_finished = max(most_finished, finished_partitions(spark))
            on_partitions(most_finished)

    return in_background(report)
