"""The tables of one finished run, RUN/tables/*.parquet: by Arrow in this process, and those of samples by Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from exchange.records import SAMPLE
from spark.errors import typed_errors
from spark.run_facts import RunFacts, read_run
from spark.samples import SOURCE, numbered_seconds, sample_summary
from spark.sessions.java import find_java
from spark.sessions.session import open_session
from spark.summary import COLUMNS_READ, RUN_COLUMNS, SECOND_COLUMNS, as_table, rows_of_run
from spark.tables.files import spark_path, tables_folder, write_by_spark, write_table
from spark.tables.spool_by_arrow import tables_of_spool


def summarize(run_folder: Path, *, write_archive: bool = False) -> str | None:
    """Make all tables of a finished run; return a note about Java for the user, if there is one.

    Arrow makes them all but sample_seconds and sample_summary, which Spark makes of the samples. SparkError, a sentence
    that says what to do, if it fails: without Java, once all others are made.
    """
    facts = read_run(run_folder)
    tables = tables_folder(run_folder)
    with typed_errors(run_folder):
        write_run_tables(run_folder, facts)
        java = find_java()
        # Once more inside the session: the cause of a failure in Spark is read from its JVM.
        with open_session(java=java, write_archive=write_archive) as spark, typed_errors(run_folder):
            write_tables_of_samples(spark, tables)
    return java.note


def write_run_tables(run_folder: Path, facts: RunFacts) -> None:
    """Write the tables that need no JVM: one for each kind, even a kind without rows, and `seconds` and `summary`.

    A second call replaces them. A line that cannot be read is in no table.
    TablesUnwritableError, or OSError if the spool cannot be read.
    """
    tables = tables_folder(run_folder)
    spool = tables_of_spool(run_folder / "spool")
    for kind, rows in spool.kinds.items():
        write_table(rows, tables / f"{kind}.parquet")
    records = [(kind, spool.kinds[kind].select(columns)) for kind, columns in COLUMNS_READ.items()]
    rows = as_table(rows_of_run(facts, records))
    write_table(rows.filter(pc.is_null(rows["second"])).select(RUN_COLUMNS), tables / "summary.parquet")
    write_table(rows.filter(pc.is_valid(rows["second"])).select(SECOND_COLUMNS), tables / "seconds.parquet")


def write_tables_of_samples(spark: SparkSession, tables: Path) -> None:
    """Write the figures of sampled completion times: those of seconds, and those of all samples.

    They are made of the table `sample`. sample_summary comes last: if it is there, all tables are.
    """
    samples = spark.read.parquet(spark_path(tables / f"{SAMPLE}.parquet"))
    write_by_spark(numbered_seconds(samples).orderBy("second", SOURCE), tables / "sample_seconds.parquet")
    write_by_spark(sample_summary(samples), tables / "sample_summary.parquet")
