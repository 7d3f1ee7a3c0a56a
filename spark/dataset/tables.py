"""The tables of a dataset: read by the manifest, written where no reader looks yet."""

from __future__ import annotations

from dataclasses import asdict

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from spark.dataset.manifest import Manifest
from spark.dataset.place import Place
from spark.known_rows import known_rows
from spark.schemas import BUCKETED, KEYS, KINDS, RUNS, dataset_schema
from spark.summary import OF_RUN
from spark.tables import escaped
from spark.whole_files import CONTENT, whole_files


def read_kinds(spark: SparkSession, place: Place, manifest: Manifest) -> dict[str, DataFrame]:
    """As spark.summary.summarize_tables wants them: of completions the files, of other kinds the rows."""
    rows = {kind: read_kind(spark, place, manifest, kind) for kind in KINDS if kind != BUCKETED}
    return {**rows, BUCKETED: files_of_runs(spark, place, manifest, BUCKETED)}


def read_kind(spark: SparkSession, place: Place, manifest: Manifest, kind: str) -> DataFrame:
    """Of all runs; rows that a later ingest replaced are not in it. Each row knows OF_RUN."""
    runs = fn.broadcast(_current(spark, manifest))
    return _read(spark, place, manifest.files(kind), kind).join(runs, ["ingest", *KEYS])


def files_of_runs(spark: SparkSession, place: Place, manifest: Manifest, kind: str) -> DataFrame:
    """(path, content, *KEYS, *OF_RUN): a row for each file of a kind that the manifest names."""
    known = [
        asdict(run.record) | {"path": place.path(file)} for run in manifest.runs for file in run.files.get(kind, ())
    ]
    runs = known_rows(spark, known, StructType([StructField("path", StringType()), *_of_run()]))
    if not known:
        return runs.withColumn(CONTENT, fn.lit(b""))  # no row
    files = whole_files(spark, [escaped(row["path"]) for row in known])
    named = files.join(fn.broadcast(runs), "path", "left")
    # A file of no run would be a mistake of ours, and must not be lost without a word.
    run = fn.coalesce("run", fn.raise_error(fn.concat(fn.lit("no run is known of "), "path")))
    return named.withColumn("run", run)


def _current(spark: SparkSession, manifest: Manifest) -> DataFrame:
    """(ingest, *KEYS, *OF_RUN): which ingest counts for each run."""
    known = [asdict(run.record) | {"ingest": run.ingest} for run in manifest.runs]
    return known_rows(spark, known, StructType([StructField("ingest", IntegerType()), *_of_run()]))


def _of_run() -> list[StructField]:
    return [RUNS[name] for name in (*KEYS, *OF_RUN)]


def read_runs(spark: SparkSession, manifest: Manifest) -> DataFrame:
    """RUNS."""
    return known_rows(spark, [asdict(run.record) for run in manifest.runs], RUNS)


def read_files(spark: SparkSession, place: Place, files: list[str]) -> DataFrame:
    """One of the tables that were made of all runs."""
    return spark.read.parquet(*(escaped(place.path(file)) for file in files))


def _read(spark: SparkSession, place: Place, files: list[str], kind: str) -> DataFrame:
    schema = dataset_schema(kind).add("ingest", IntegerType())
    if not files:
        return known_rows(spark, [], schema)
    # An ingest's folder, which is listed at once, in place of each file: the names below it are the keys.
    folders = {"/".join(file.split("/")[:2]) for file in files}
    reader = spark.read.schema(schema).option("basePath", place.path(kind))
    return reader.parquet(*(escaped(place.path(folder)) for folder in sorted(folders)))


def write_by_run(rows: DataFrame, place: Place, name: str) -> None:
    """A folder a run; a file each where a run's rows are in one partition."""
    rows.write.mode("overwrite").partitionBy(*KEYS).parquet(place.path(name), compression="gzip")


def write_whole(rows: DataFrame, place: Place, name: str) -> list[str]:
    """One file; its name."""
    rows.coalesce(1).write.mode("overwrite").parquet(place.path(name), compression="gzip")
    return place.files(name)
