"""The tables of a dataset: read by the manifest, written where no reader looks yet."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from spark.dataset.manifest import Manifest
from spark.dataset.place import Place
from spark.schemas import KEYS
from spark.summary.measured import RunFile
from spark.tables import escaped


def run_files(place: Place, manifest: Manifest) -> dict[str, RunFile]:
    """By path, every file that counts; those that a later ingest replaced are not among them."""
    return {
        place.path(file): RunFile(run.record, kind)
        for run in manifest.runs
        for kind, files in run.files.items()
        for file in files
    }


def read_files(spark: SparkSession, place: Place, files: list[str]) -> DataFrame:
    """One of the tables that were made of all runs."""
    return spark.read.parquet(*(escaped(place.path(file)) for file in files))


def write_by_run(rows: DataFrame, place: Place, name: str) -> None:
    """A folder a run; a file each where a run's rows are in one partition."""
    rows.write.mode("overwrite").partitionBy(*KEYS).parquet(place.path(name), compression="gzip")


def write_whole(rows: DataFrame, place: Place, name: str) -> list[str]:
    """One file; its name."""
    rows.coalesce(1).write.mode("overwrite").parquet(place.path(name), compression="gzip")
    return place.files(name)
