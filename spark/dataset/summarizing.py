"""Makes the summary's tables from the tables of all runs; they are small, however many orders there were.

    summary       a row for each run                       arms          a row for each arm: medians over its runs
    seconds       a row for each second of each run        comparison    pairs of arms that differ in one thing

Columns of `arms` have the exchange's figures of the paper "AMQP over InfiniBand":

    figure 8 (a)      orders_per_s, answers_per_s
    figure 8 (b, c)   handed_over_mean_us
    figure 9          broker_cpu_percent, gateway_cpu_percent, engine_cpu_percent
    table 1           packets, packet_bytes, packet_gap_us

A run that its trial set aside, or that is neither complete nor saturated, is counted, and is in no median. The trial's
own page has intervals and verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from spark.dataset.folder import DatasetFolder, TablesFolder
from spark.dataset.replacing import replacing_files, staged
from spark.dataset.runs import RUNS, RUNS_SCHEMA, IngestedRun, Name, read_runs
from spark.errors import DatasetUnreadableError
from spark.gold import views as gold
from spark.run_facts import RunFacts
from spark.summary import COLUMNS_READ, ROW_SCHEMA, RUN_COLUMNS, SECOND_COLUMNS, RunRecords, as_table
from spark.tables.schemas import KEYS, table_schema

RUN_ITSELF = "run itself"
"""The kind of a row without figures that each run has, so that a run without records has its rows, too."""
KIND = "kind"


def summarize_runs(spark: SparkSession, folder: DatasetFolder) -> list[IngestedRun]:
    """Replace the summary's tables. Returns the runs from which they are made."""
    with replacing_files(folder):
        runs = read_runs(folder)
        if not runs:
            raise DatasetUnreadableError(
                f"no runs have tables at {folder.url}: make them first, with exchange spark ingest"
            )
        # A checkpoint keeps the rows without their plan: Spark would work through the plan again for each table.
        tables = {kind: read_kind(spark, folder, kind) for kind in COLUMNS_READ if folder.files(kind)}
        rows = summary_rows(spark, tables, [run.facts for run in runs]).localCheckpoint()
        rows_of_runs = pa.Table.from_pylist([run.row() for run in runs], RUNS_SCHEMA)
        spark.createDataFrame(rows_of_runs).createOrReplaceTempView(RUNS)
        summary = runs_table(rows)
        summary.createOrReplaceTempView("summary")
        arms = gold.arms(spark).localCheckpoint()
        arms.createOrReplaceTempView("arms")
        tables_of_summary = {
            "summary": summary,
            "seconds": seconds_table(rows),
            "arms": arms,
            "comparison": gold.comparison(spark),
        }
        _write(tables_of_summary, folder)
    return runs


def read_kind(spark: SparkSession, folder: TablesFolder, kind: str) -> DataFrame:
    """Return the records of a kind, of all runs, with KEYS."""
    columns = pa.schema([pa.field("run", pa.string()), *table_schema(kind), pa.field("experiment", pa.string())])
    return spark.read.schema(from_arrow_schema(columns)).parquet(folder.pattern(kind))


def summary_rows(spark: SparkSession, tables: Mapping[str, DataFrame], runs: Sequence[RunFacts]) -> DataFrame:
    """Return rows of ROW_SCHEMA of these runs, in one partition, in order. `tables` has the records of each kind.

    Spark groups the records of all kinds together, so that an executor gets all records of a run in one call.
    """
    names = pa.table({"experiment": [run.experiment for run in runs], "run": [run.run for run in runs]})
    rows_of_kinds = [spark.createDataFrame(names).withColumn(KIND, fn.lit(RUN_ITSELF))]
    for kind, records in tables.items():
        rows_of_kinds.append(records.select(*KEYS, fn.lit(kind).alias(KIND), *COLUMNS_READ[kind]))
    together = reduce(lambda first, second: first.unionByName(second, allowMissingColumns=True), rows_of_kinds)
    rows = together.groupBy(*KEYS).applyInArrow(_summarizer(runs), from_arrow_schema(ROW_SCHEMA))
    return rows.repartition(1).sortWithinPartitions(*KEYS, "second")


Batches = Iterator[pa.RecordBatch]


def _summarizer(runs: Sequence[RunFacts]) -> Callable[[tuple[pa.Scalar, ...], Batches], Batches]:
    """Return the function that an executor calls with the records of one run."""
    by_name: dict[Name, RunFacts] = {}
    for run in runs:
        by_name[run.experiment, run.run] = replace(run, host={}, settings={})

    def summarize(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a run, from all its records."""
        experiment, name = (scalar.as_py() for scalar in key)
        if (experiment, name) not in by_name:  # its ingest was killed before the run came into the table of runs
            return
        records = RunRecords(by_name[experiment, name])
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for kind, columns in COLUMNS_READ.items():
                rows_of_kind = table.filter(pc.equal(table[KIND], kind))
                if rows_of_kind.num_rows:
                    records.take(kind, rows_of_kind.select(columns))
        yield from as_table(records.rows()).combine_chunks().to_batches()

    return summarize


def runs_table(rows: DataFrame) -> DataFrame:
    """Return one row a run."""
    return rows.where("second IS NULL").select(*RUN_COLUMNS)


def seconds_table(rows: DataFrame) -> DataFrame:
    """Return one row a second."""
    return rows.where("second IS NOT NULL").select(*SECOND_COLUMNS)


def _write(tables: Mapping[str, DataFrame], folder: DatasetFolder) -> None:
    """Write all tables at once, since Spark plans each for longer than it works on it."""
    writers = {name: rows.coalesce(1).write.mode("overwrite") for name, rows in tables.items()}
    with ThreadPoolExecutor(len(tables)) as threads:
        jobs = [
            threads.submit(writer.parquet, folder.path(staged(name)), compression="gzip")
            for name, writer in writers.items()
        ]
    for job in jobs:
        job.result()  # raises what the writer has raised
    missing = [name for name in tables if not folder.files(staged(name))]
    if missing:
        raise DatasetUnreadableError(
            f"Spark wrote {missing[0]} to another disk: {folder.url} must be the same folder for Spark and this machine"
        )
