"""From the tables of all runs to those of what they measured; small, however many orders there were."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark.arms import arms_table, comparison_table, run_facts
from spark.dataset.manifest import Manifest, read_manifest, write_manifest
from spark.dataset.place import Place
from spark.dataset.tables import read_kinds, read_runs, write_whole
from spark.errors import DatasetUnreadableError
from spark.summary import runs_table, seconds_table, summarize_tables

SUMMARY = ("summary", "seconds", "arms", "comparison")


def summarize_runs(spark: SparkSession, place: Place) -> Manifest:
    """Write SUMMARY anew, and the manifest that says so."""
    before = read_manifest(place)
    if not before.runs:
        raise DatasetUnreadableError(f"no runs have tables at {place.url}: make them first, with exchange spark ingest")
    runs = read_runs(spark, before).persist()
    measured = summarize_tables(read_kinds(spark, place, before), runs).persist()
    arms = arms_table(run_facts(runs_table(measured, runs), runs)).persist()
    tables = (runs_table(measured, runs), seconds_table(measured, runs), arms, comparison_table(arms))
    after_number = before.number + 1
    files = {
        name: write_whole(table, place, f"{name}/summary={after_number}")
        for name, table in zip(SUMMARY, tables, strict=True)
    }
    for kept in (arms, measured, runs):
        kept.unpersist()
    after = before.with_summary(files)
    write_manifest(place, after)
    for name in SUMMARY:
        for folder in place.folders(name):
            if folder not in {f"summary={before.number}", f"summary={after.number}"}:
                place.remove(f"{name}/{folder}")
    return after
