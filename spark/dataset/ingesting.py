"""The spools of finished runs to a dataset; a line that is in no other table is counted and put in quarantine.

    spool files --parse--> records --one partition a run--> a table a kind --> manifest

An ingest that is killed leaves the tables as they were, since the manifest comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from spark.dataset.folder import DatasetFolder, local_uri
from spark.dataset.manifest import IngestedRun, Manifest, Name, read_manifest, write_manifest
from spark.run_facts import RunFacts
from spark.tables.files import spark_path
from spark.tables.schemas import KEYS, KINDS
from spark.tables.spool import Unread, count_problems, is_copy, read_records, rows_of_kind

QUARANTINE = "quarantine"
LEAST_PARTITIONS = 2
RUNS_A_PARTITION = 8
"""A partition is one task, which must hold its runs' lines in memory."""


@dataclass(frozen=True, kw_only=True)
class RunSource:
    """A finished run on this machine. `fingerprint` is of its run.json, and tells whether that was read before."""

    record: RunFacts
    spool: Path
    fingerprint: str


def ingest_runs(spark: SparkSession, folder: DatasetFolder, sources: Sequence[RunSource]) -> Manifest:
    """Add these runs to the dataset, in place of former tables of theirs; return the new manifest."""
    before = read_manifest(folder)
    number = before.number + 1
    records = read_records(_lines(spark, sources)).persist()
    try:
        counted = _counted(records)
        for kind in KINDS:
            rows = rows_of_kind(records, kind, KEYS).sortWithinPartitions(*KEYS, "wall_ns", "source")
            _write_by_run(rows, folder, _subfolder(kind, number))
        quarantined = records.where("problem IS NOT NULL").select(*KEYS, "problem", "file", "example")
        _write_by_run(quarantined, folder, _subfolder(QUARANTINE, number))
    finally:
        records.unpersist()
    files = {kind: _files_by_run(folder, kind, number) for kind in (*KINDS, QUARANTINE)}
    after = before.with_runs(_ingested(source, number, counted, files) for source in sources)
    write_manifest(folder, after)
    _remove_unused(folder, before, after)
    return after


def _lines(spark: SparkSession, sources: Sequence[RunSource]) -> DataFrame:
    """Read (value, *KEYS, file, is_copy); a copy stands earlier in its run's spool, too."""
    names = [(local_uri(spark, s.spool), s.record.experiment, s.record.run) for s in sources]
    runs = spark.createDataFrame(names, f"folder string, {', '.join(f'{key} string' for key in KEYS)}")
    text = spark.read.text([spark_path(source.spool) for source in sources], pathGlobFilter="*.jsonl")
    path = fn.col("_metadata.file_path")
    lines = text.select(
        "value",
        fn.regexp_extract(path, "^(.*)/[^/]*$", 1).alias("folder"),
        fn.regexp_extract(path, "([^/]*)$", 1).alias("file"),
    )
    # A line without a run would be a mistake of ours, and must not be lost silently.
    run = fn.coalesce("run", fn.raise_error(fn.concat(fn.lit("no run is known at "), "folder"))).alias("run")
    named = lines.join(fn.broadcast(runs), "folder", "left").select("value", "experiment", run, "file")
    partitions = max(LEAST_PARTITIONS, len(sources) // RUNS_A_PARTITION)
    return named.repartition(partitions, *KEYS).withColumn("is_copy", is_copy(*KEYS, order="file"))


def _counted(records: DataFrame) -> dict[Name, list[tuple[str | None, str | None, int, str | None]]]:
    """Return (kind, problem, lines, example) by run, a handful for each."""
    counted: dict[Name, list[tuple[str | None, str | None, int, str | None]]] = {}
    for experiment, run, *count in count_problems(records, KEYS).collect():
        counted.setdefault((experiment, run), []).append((count[0], count[1], count[2], count[3]))
    return counted


def _ingested(
    source: RunSource,
    number: int,
    counted: dict[Name, list[tuple[str | None, str | None, int, str | None]]],
    files: dict[str, dict[Name, list[str]]],
) -> IngestedRun:
    name = (source.record.experiment, source.record.run)
    counts = counted.get(name, [])
    return IngestedRun(
        record=source.record,
        fingerprint=source.fingerprint,
        ingest=number,
        rows=dict.fromkeys(KINDS, 0) | {kind: lines for kind, problem, lines, _ in counts if kind and problem is None},
        unread={problem: Unread(lines, example or "") for _, problem, lines, example in counts if problem},
        files={kind: by_run[name] for kind, by_run in files.items() if name in by_run},
    )


def _write_by_run(rows: DataFrame, folder: DatasetFolder, name: str) -> None:
    """Write a folder a run, with one file in it if the run's rows are in one partition."""
    rows.write.mode("overwrite").partitionBy(*KEYS).parquet(folder.path(name), compression="gzip")


def _files_by_run(folder: DatasetFolder, kind: str, number: int) -> dict[Name, list[str]]:
    """List the files of this ingest, by the run that the names of their folders say."""
    found: dict[Name, list[str]] = {}
    for file in folder.files(_subfolder(kind, number)):
        experiment, run = (folder.unescaped(part.partition("=")[2]) for part in file.split("/")[2:4])
        found.setdefault((experiment, run), []).append(file)
    return found


def _subfolder(kind: str, number: int) -> str:
    return f"{kind}/ingest={number}"


def _remove_unused(folder: DatasetFolder, before: Manifest, after: Manifest) -> None:
    """Remove ingests of which neither manifest names a file: their runs were all replaced, or they were killed."""
    for kind in (*KINDS, QUARANTINE):
        used = {file.split("/")[1] for manifest in (before, after) for file in manifest.files(kind)}
        for subfolder in folder.folders(kind):
            number = subfolder.removeprefix("ingest=")
            if subfolder not in used and number.isdecimal() and int(number) < after.number:
                folder.remove(f"{kind}/{subfolder}")
