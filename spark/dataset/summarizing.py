"""The tables of all runs to the summary's tables, which are small, however many orders there were.

The tables of arms hold the paper's figures and table over repeats, and arms that differ in one thing side by side:

    figure 8 (a)      orders_per_s, answers_per_s              figure 9    broker_, gateway_, engine_cpu_percent
    figure 8 (b, c)   handed_over_mean_us                      table 1     packets, packet_bytes, packet_gap_us

They are medians over the repeats of an arm. A run that is neither complete nor saturated is counted, and is in no
median. Intervals and verdicts are those of the trial's own page; tables hold only what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from spark.dataset.folder import DatasetFolder
from spark.dataset.manifest import Manifest, read_manifest, write_manifest
from spark.errors import DatasetUnreadableError
from spark.summary.columns import FACTS, OFFERED, RATE, TIMES
from spark.summary.rows import RunFile, run_facts, runs_table, seconds_table, summary_rows
from spark.tables.files import escaped

MEASURED = (RATE, *FACTS, *TIMES)
ARM = ("experiment", "arm", "transport", OFFERED)
COUNTED_STATUSES = ("complete", "saturated")
COMPARED = ("due_p50_us", "due_p99_us", "handed_over_mean_us", RATE, "cpu_s_per_million")


def summarize_runs(spark: SparkSession, folder: DatasetFolder) -> Manifest:
    """Write the summary's tables anew, and then the manifest that names them."""
    before = read_manifest(folder)
    if not before.runs:
        raise DatasetUnreadableError(
            f"no runs have tables at {folder.url}: make them first, with exchange spark ingest"
        )
    # Checkpoints keep the rows without their plans, which Spark would look through again for each of the tables.
    rows = summary_rows(spark, run_files(folder, before), [run.record for run in before.runs]).localCheckpoint()
    arms = arms_table(run_facts(rows)).localCheckpoint()
    tables = {
        "summary": runs_table(rows), "seconds": seconds_table(rows), "arms": arms, "comparison": comparison_table(arms)
    }  # fmt: skip
    after = before.with_summary(_written(tables, folder, before.number + 1))
    write_manifest(folder, after)
    for name in tables:
        for subfolder in folder.folders(name):
            if subfolder not in {f"summary={before.number}", f"summary={after.number}"}:
                folder.remove(f"{name}/{subfolder}")
    return after


def run_files(folder: DatasetFolder, manifest: Manifest) -> dict[str, RunFile]:
    """Return every file that the manifest names for a run, by path."""
    return {
        folder.path(file): RunFile(run.record, kind)
        for run in manifest.runs
        for kind, files in run.files.items()
        for file in files
    }


def read_files(spark: SparkSession, folder: DatasetFolder, files: list[str]) -> DataFrame:
    """Read one of the summary's tables."""
    return spark.read.parquet(*(escaped(folder.path(file)) for file in files))


def _written(tables: Mapping[str, DataFrame], folder: DatasetFolder, number: int) -> dict[str, list[str]]:
    """Write all tables at once, since Spark plans each for longer than it works on it; return the files of each."""
    with ThreadPoolExecutor(len(tables)) as threads:
        writing = {
            name: threads.submit(_write_whole, table, folder, f"{name}/summary={number}")
            for name, table in tables.items()
        }
        return {name: files.result() for name, files in writing.items()}


def _write_whole(rows: DataFrame, folder: DatasetFolder, name: str) -> list[str]:
    """Write one file; return its name."""
    rows.coalesce(1).write.mode("overwrite").parquet(folder.path(name), compression="gzip")
    return folder.files(name)


def arms_table(measured: DataFrame) -> DataFrame:
    """Return (*ARM, repeats, left_out, median of each of MEASURED), a row an arm, from `run_facts`."""
    counts = fn.col("status").isin(*COUNTED_STATUSES)
    repeats, left_out = fn.count_if(counts).alias("repeats"), fn.count_if(~counts).alias("left_out")
    medians = [fn.median(fn.when(counts, fn.col(name))).alias(name) for name in MEASURED]
    return measured.groupBy(*ARM).agg(repeats, left_out, *medians).orderBy(*ARM)


def comparison_table(arms: DataFrame) -> DataFrame:
    """Compare two arms of an experiment at a time: (experiment, OFFERED, first, second, ratios second / first).

    The arms are offered the same, and have either two transports and equal settings, or one transport and other
    settings.
    """
    first, second = arms.alias("first"), arms.alias("second")
    together = first.join(
        second,
        _same("experiment")
        & fn.col(f"first.{OFFERED}").eqNullSafe(fn.col(f"second.{OFFERED}"))
        & (_name("first") < _name("second"))
        & (_same("transport") | _same("arm")),
    )
    ratios = [(fn.col(f"second.{name}") / fn.col(f"first.{name}")).alias(f"{name}_ratio") for name in COMPARED]
    names = [fn.col("first.experiment"), fn.col(f"first.{OFFERED}"), _name("first").alias("first")]
    return together.select(*names, _name("second").alias("second"), *ratios).orderBy("experiment", OFFERED, "first")


def _same(name: str) -> Column:
    return fn.col(f"first.{name}") == fn.col(f"second.{name}")


def _name(side: str) -> Column:
    """Name an arm by its transport and its settings."""
    return fn.concat_ws(" ", fn.col(f"{side}.transport"), fn.nullif(fn.col(f"{side}.arm"), fn.lit("")))
