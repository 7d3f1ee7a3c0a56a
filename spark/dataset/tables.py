"""The tables of a dataset: read by the manifest, written where no reader looks yet."""

from __future__ import annotations

from dataclasses import asdict

from pyspark.sql import DataFrame, SparkSession

from spark.dataset.manifest import Manifest
from spark.dataset.place import Place
from spark.schemas import KEYS, KINDS, RUNS, dataset_schema
from spark.tables import escaped


def read_kinds(spark: SparkSession, place: Place, manifest: Manifest) -> dict[str, DataFrame]:
    """A table a kind, of all runs."""
    return {kind: _read(spark, place, manifest.files(kind), kind) for kind in KINDS}


def read_runs(spark: SparkSession, manifest: Manifest) -> DataFrame:
    """RUNS."""
    return spark.createDataFrame([asdict(run.record) for run in manifest.runs], RUNS).coalesce(1)


def read_files(spark: SparkSession, place: Place, files: list[str]) -> DataFrame:
    """One of the tables that were made of all runs."""
    return spark.read.parquet(*(escaped(place.path(file)) for file in files))


def _read(spark: SparkSession, place: Place, files: list[str], kind: str) -> DataFrame:
    schema = dataset_schema(kind)
    if not files:
        return spark.createDataFrame([], schema)
    # Folders, not files: there are fewer, and each holds what one ingest made of one run. Their names are its keys.
    folders = sorted({escaped(place.path(file.rpartition("/")[0])) for file in files})
    rows = spark.read.schema(schema).option("basePath", escaped(place.path(kind))).parquet(*folders)
    return rows.select(*schema.names)


def write_by_run(rows: DataFrame, place: Place, name: str) -> None:
    """A folder a run; a file each where a run's rows are in one partition."""
    rows.write.mode("overwrite").partitionBy(*KEYS).parquet(place.path(name), compression="gzip")


def write_whole(rows: DataFrame, place: Place, name: str) -> list[str]:
    """One file; its name."""
    rows.coalesce(1).write.mode("overwrite").parquet(place.path(name), compression="gzip")
    return place.files(name)
