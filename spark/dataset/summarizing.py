"""From the tables of all runs to those of what they measured; small, however many orders there were."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import DataFrame, SparkSession

from spark.arms import arms_table, comparison_table
from spark.dataset.manifest import Manifest, read_manifest, write_manifest
from spark.dataset.place import Place
from spark.dataset.tables import run_files, write_whole
from spark.errors import DatasetUnreadableError
from spark.summary.measured import measured, run_facts, runs_table, seconds_table


def summarize_runs(spark: SparkSession, place: Place) -> Manifest:
    """Write the summary's tables anew, and the manifest that says so."""
    before = read_manifest(place)
    if not before.runs:
        raise DatasetUnreadableError(f"no runs have tables at {place.url}: make them first, with exchange spark ingest")
    # Kept without the plans that made them, which Spark would look through again for each of the tables.
    rows = measured(spark, run_files(place, before), [run.record for run in before.runs]).localCheckpoint()
    arms = arms_table(run_facts(rows)).localCheckpoint()
    tables = {
        "summary": runs_table(rows), "seconds": seconds_table(rows), "arms": arms, "comparison": comparison_table(arms)
    }  # fmt: skip
    after = before.with_summary(_written(tables, place, before.number + 1))
    write_manifest(place, after)
    for name in tables:
        for folder in place.folders(name):
            if folder not in {f"summary={before.number}", f"summary={after.number}"}:
                place.remove(f"{name}/{folder}")
    return after


def _written(tables: Mapping[str, DataFrame], place: Place, number: int) -> dict[str, list[str]]:
    """The files of each; all are written at once, since of each more is planned than done."""
    with ThreadPoolExecutor(len(tables)) as threads:
        writing = {
            name: threads.submit(write_whole, table, place, f"{name}/summary={number}")
            for name, table in tables.items()
        }
        return {name: files.result() for name, files in writing.items()}
