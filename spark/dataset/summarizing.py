"""Makes the summary's tables of the tables of all runs; they are small, however many orders there were.

The tables of arms hold the paper's figures and table over repeats, and arms that differ in one thing side by side:

    figure 8 (a)      orders_per_s, answers_per_s              figure 9    broker_, gateway_, engine_cpu_percent
    figure 8 (b, c)   handed_over_mean_us                      table 1     packets, packet_bytes, packet_gap_us

They are medians over the repeats of an arm. A run that its trial set aside, or that is neither complete nor saturated,
is counted, and is in no median. Intervals and verdicts are those of the trial's own page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from spark import summary
from spark.dataset.folder import DatasetFolder, TablesFolder
from spark.dataset.replacing import changing, staged
from spark.dataset.runs import IngestedRun, Name, read_runs
from spark.errors import DatasetUnreadableError
from spark.run_facts import FACTS, SEED, RunFacts
from spark.summary import OFFERED, RATE, READ, ROWS, RUN_COLUMNS, SECOND_COLUMNS, TIMES, RunRecords, as_table
from spark.tables.schemas import KEYS, WORDS, table_schema

MEASURED = (RATE, *FACTS, *TIMES)
ARM = ("experiment", "arm", "transport", OFFERED)
COUNTED_STATUSES = ("complete", "saturated")
RUN_ITSELF = "run itself"
"""The kind of a row without figures that each run has, so that a run without records has its rows, too."""
KIND = "kind"
SETTINGS_OF_ARM = pa.schema(
    {
        "experiment": pa.string(),
        "arm": pa.string(),
        "transport": pa.string(),
        OFFERED: pa.float64(),
        "packing": pa.int32(),
        "policy": pa.string(),
        "settings": WORDS,
    }
)
"""An arm, and the settings that its repeats share."""
COMPARED = ("due_p50_us", "due_p99_us", "handed_over_mean_us", RATE, "cpu_s_per_million")


def summarize_runs(spark: SparkSession, folder: DatasetFolder) -> list[IngestedRun]:
    """Replace the summary's tables; return the runs that they are made of."""
    with changing(folder):
        runs = read_runs(folder)
        if not runs:
            raise DatasetUnreadableError(
                f"no runs have tables at {folder.url}: make them first, with exchange spark ingest"
            )
        # Checkpoints keep the rows without their plans, which Spark would look through again for each of the tables.
        tables = {kind: records_of(spark, folder, kind) for kind in READ if folder.files(kind)}
        rows = summary_rows(spark, tables, [run.record for run in runs]).localCheckpoint()
        arms = with_settings(arms_table(run_facts(rows)), runs).localCheckpoint()
        _write(
            {
                "summary": runs_table(rows),
                "seconds": seconds_table(rows),
                "arms": arms,
                "comparison": comparison_table(arms),
            },
            folder,
        )
    return runs


def records_of(spark: SparkSession, folder: TablesFolder, kind: str) -> DataFrame:
    """Return the table of a kind, with KEYS in front."""
    columns = pa.schema([pa.field("run", pa.string()), *table_schema(kind), pa.field("experiment", pa.string())])
    return spark.read.schema(from_arrow_schema(columns)).parquet(folder.pattern(kind))


def summary_rows(spark: SparkSession, tables: Mapping[str, DataFrame], runs: Sequence[RunFacts]) -> DataFrame:
    """Return ROWS of these runs, in one partition, in order. `tables` has the records of each kind."""
    names = pa.table({"experiment": [run.experiment for run in runs], "run": [run.run for run in runs]})
    parts = [spark.createDataFrame(names).withColumn(KIND, fn.lit(RUN_ITSELF))]
    for kind, records in tables.items():
        parts.append(records.select(*KEYS, fn.lit(kind).alias(KIND), *READ[kind]))
    together = reduce(lambda first, second: first.unionByName(second, allowMissingColumns=True), parts)
    rows = together.groupBy(*KEYS).applyInArrow(_summarizer(runs), from_arrow_schema(ROWS))
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
            for kind, columns in READ.items():
                of_kind = table.filter(pc.equal(table[KIND], kind))
                if of_kind.num_rows:
                    records.take(kind, of_kind.select(columns))
        yield from as_table(records.rows()).combine_chunks().to_batches()

    return summarize


def runs_table(rows: DataFrame) -> DataFrame:
    """Return one row a run."""
    return rows.where("second IS NULL").select(*RUN_COLUMNS)


def seconds_table(rows: DataFrame) -> DataFrame:
    """Return one row a second."""
    return rows.where("second IS NOT NULL").select(*SECOND_COLUMNS)


def run_facts(rows: DataFrame) -> DataFrame:
    """Return one row a run, with its arm and FACTS."""
    measured = (*summary.MEASURED, *FACTS)
    return rows.where("second IS NULL").select(*KEYS, *summary.WORD_COLUMNS, OFFERED, RATE, *measured)


def with_settings(arms: DataFrame, runs: Sequence[IngestedRun]) -> DataFrame:
    """Return the arms with packing, policy and the map of settings that the repeats share, behind the arm's name."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in runs:
        record = run.record
        settings = {name: words for name, words in record.settings.items() if name not in (SEED, "url")}
        row = {name: getattr(record, name) for name in SETTINGS_OF_ARM.names} | {"settings": settings}
        rows.setdefault(tuple(row[name] for name in ARM), row)
    table = pa.Table.from_pylist(list(rows.values()), SETTINGS_OF_ARM)
    settings_of_arms = fn.broadcast(arms.sparkSession.createDataFrame(table)).alias("of_arm")
    is_same_arm = reduce(lambda first, second: first & second, (_is_same(name) for name in ARM))
    joined = arms.alias("arms").join(settings_of_arms, is_same_arm, "left")
    measured = [f"arms.{name}" for name in arms.columns if name not in ARM]
    names = [f"arms.{name}" for name in ARM]
    return joined.select(*names, "of_arm.packing", "of_arm.policy", "of_arm.settings", *measured).orderBy(*names)


def _is_same(name: str) -> Column:
    return fn.col(f"arms.{name}").eqNullSafe(fn.col(f"of_arm.{name}"))


def _write(tables: Mapping[str, DataFrame], folder: DatasetFolder) -> None:
    """Write all tables at once, since Spark plans each for longer than it works on it."""
    writers = {name: rows.coalesce(1).write.mode("overwrite") for name, rows in tables.items()}
    with ThreadPoolExecutor(len(tables)) as threads:
        list(threads.map(lambda name: writers[name].parquet(folder.path(staged(name)), compression="gzip"), writers))
    missing = [name for name in tables if not folder.files(staged(name))]
    if missing:
        raise DatasetUnreadableError(
            f"Spark wrote {missing[0]} to another disk: {folder.url} must be the same folder for it and this machine"
        )


def arms_table(measured: DataFrame) -> DataFrame:
    """Return (*ARM, repeats, left_out, median of each of MEASURED), a row an arm, from `run_facts`."""
    counts = fn.col("status").isin(*COUNTED_STATUSES)
    repeats = fn.count_if(counts).alias("repeats")
    left_out = fn.count_if(~counts).alias("left_out")
    medians = [fn.median(fn.when(counts, fn.col(name))).alias(name) for name in MEASURED]
    return measured.groupBy(*ARM).agg(repeats, left_out, *medians).orderBy(*ARM)


def comparison_table(arms: DataFrame) -> DataFrame:
    """Return a row for each two arms of an experiment: (experiment, OFFERED, first, second, ratios second / first).

    The arms are offered the same, and have either two transports and equal settings, or one transport and other
    settings.
    """
    first = arms.alias("first")
    second = arms.alias("second")
    pairs = first.join(
        second,
        _same("experiment")
        & fn.col(f"first.{OFFERED}").eqNullSafe(fn.col(f"second.{OFFERED}"))
        & (_name("first") < _name("second"))
        & (_same("transport") | _same("arm")),
    )
    ratios = [(fn.col(f"second.{name}") / fn.col(f"first.{name}")).alias(f"{name}_ratio") for name in COMPARED]
    names = [fn.col("first.experiment"), fn.col(f"first.{OFFERED}"), _name("first").alias("first")]
    return pairs.select(*names, _name("second").alias("second"), *ratios).orderBy("experiment", OFFERED, "first")


def _same(name: str) -> Column:
    return fn.col(f"first.{name}") == fn.col(f"second.{name}")


def _name(side: str) -> Column:
    """Return the name of the arm on this side: its transport and its settings."""
    return fn.concat_ws(" ", fn.col(f"{side}.transport"), fn.nullif(fn.col(f"{side}.arm"), fn.lit("")))
