"""Makes the summary's tables of the tables of all runs; they are small, however many orders there were.

The tables of arms hold the paper's figures and table over repeats, and arms that differ in one thing side by side:

    figure 8 (a)      orders_per_s, answers_per_s              figure 9    broker_, gateway_, engine_cpu_percent
    figure 8 (b, c)   handed_over_mean_us                      table 1     packets, packet_bytes, packet_gap_us

They are medians over the repeats of an arm. A run that its trial set aside, or that is neither complete nor saturated,
is counted, and is in no median. Intervals and verdicts are those of the trial's own page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from spark.dataset.folder import DatasetFolder, experiment_and_part
from spark.dataset.replacing import changing, staged
from spark.dataset.runs import IngestedRun, read_runs
from spark.errors import DatasetUnreadableError
from spark.run_facts import RunFacts
from spark.summary import (
    FACTS,
    OFFERED,
    RATE,
    READ,
    TIMES,
    RecordsFile,
    run_facts,
    runs_table,
    seconds_table,
    summary_rows,
)

MEASURED = (RATE, *FACTS, *TIMES)
ARM = ("experiment", "arm", "transport", OFFERED)
COUNTED_STATUSES = ("complete", "saturated")
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
        rows = summary_rows(spark, records_files(folder, runs), [run.record for run in runs]).localCheckpoint()
        arms = arms_table(run_facts(rows)).localCheckpoint()
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


def records_files(folder: DatasetFolder, runs: Sequence[IngestedRun]) -> dict[str, RecordsFile]:
    """Return every file that a summary reads, by path."""
    runs_by_part: defaultdict[tuple[str, int], list[RunFacts]] = defaultdict(list)
    for run in runs:
        runs_by_part[run.record.experiment, run.part].append(run.record)
    files = {}
    for kind in READ:
        for file in folder.files(kind):
            runs_in_file = runs_by_part[experiment_and_part(file)]
            files[folder.path(file)] = RecordsFile(kind, tuple(runs_in_file))
    return files


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
