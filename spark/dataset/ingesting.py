"""From the spools of finished runs to a dataset; a line that is in no table is counted, and kept in quarantine.

    spool files --parse--> records --one partition a run--> a table a kind --> manifest

Killed at any moment it leaves the tables as they were: the manifest comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from spark.dataset.manifest import IngestedRun, Manifest, Name, read_manifest, write_manifest
from spark.dataset.place import Place, local_uri
from spark.dataset.tables import write_by_run
from spark.ingest import Unread, count_problems, is_copy, read_records, rows_of_kind
from spark.run_record import RunRecord
from spark.schemas import KEYS, KINDS
from spark.tables import spark_path

QUARANTINE = "quarantine"
PARTITIONS = 2
"""At least so many."""
RUNS_A_PARTITION = 8
"""Each is one task, which must hold its runs' lines in memory."""


@dataclass(frozen=True, kw_only=True)
class RunSource:
    """A finished run on this machine; `fingerprint` tells whether its run.json was read before."""

    record: RunRecord
    spool: Path
    fingerprint: str


def ingest_runs(spark: SparkSession, place: Place, sources: Sequence[RunSource]) -> Manifest:
    """The dataset with these runs, in place of what it knew of them."""
    before = read_manifest(place)
    number = before.number + 1
    records = read_records(_lines(spark, sources)).persist()
    try:
        counted = _counted(records)
        for kind in KINDS:
            rows = rows_of_kind(records, kind, KEYS).sortWithinPartitions(*KEYS, "wall_ns", "source")
            write_by_run(rows, place, _folder(kind, number))
        write_by_run(records.where("problem IS NOT NULL").select(*KEYS, "problem", "file", "example"),
                     place, _folder(QUARANTINE, number))  # fmt: skip
    finally:
        records.unpersist()
    files = {kind: _by_run(place, kind, number) for kind in (*KINDS, QUARANTINE)}
    after = before.with_runs(_ingested(source, number, counted, files) for source in sources)
    write_manifest(place, after)
    _remove_unused(place, before, after)
    return after


def _lines(spark: SparkSession, sources: Sequence[RunSource]) -> DataFrame:
    """(value, *KEYS, file, is_copy): whose, from where, and whether the same line stands in its run's spool before."""
    names = [(local_uri(spark, s.spool), s.record.experiment, s.record.run) for s in sources]
    known = spark.createDataFrame(names, f"folder string, {', '.join(f'{key} string' for key in KEYS)}")
    text = spark.read.text([spark_path(source.spool) for source in sources], pathGlobFilter="*.jsonl")
    path = fn.col("_metadata.file_path")
    lines = text.select(
        "value",
        fn.regexp_extract(path, "^(.*)/[^/]*$", 1).alias("folder"),
        fn.regexp_extract(path, "([^/]*)$", 1).alias("file"),
    )
    # A line of no run would be a mistake of ours, and must not be lost without a word.
    run = fn.coalesce("run", fn.raise_error(fn.concat(fn.lit("no run is known at "), "folder"))).alias("run")
    named = lines.join(fn.broadcast(known), "folder", "left").select("value", "experiment", run, "file")
    partitions = max(PARTITIONS, len(sources) // RUNS_A_PARTITION)
    return named.repartition(partitions, *KEYS).withColumn("is_copy", is_copy(*KEYS, order="file"))


def _counted(records: DataFrame) -> dict[Name, list[tuple[str | None, str | None, int, str | None]]]:
    """By run: (kind, problem, lines, example). A handful of rows a run."""
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
    of_run = counted.get(name, [])
    return IngestedRun(
        record=source.record,
        fingerprint=source.fingerprint,
        ingest=number,
        rows=dict.fromkeys(KINDS, 0) | {kind: lines for kind, problem, lines, _ in of_run if kind and problem is None},
        unread={problem: Unread(lines, example or "") for _, problem, lines, example in of_run if problem},
        files={kind: of_kind[name] for kind, of_kind in files.items() if name in of_kind},
    )


def _by_run(place: Place, kind: str, number: int) -> dict[Name, list[str]]:
    """The files of this ingest, by the names in their folders."""
    found: dict[Name, list[str]] = {}
    for file in place.files(_folder(kind, number)):
        experiment, run = (place.unescaped(part.partition("=")[2]) for part in file.split("/")[2:4])
        found.setdefault((experiment, run), []).append(file)
    return found


def _folder(kind: str, number: int) -> str:
    return f"{kind}/ingest={number}"


def _remove_unused(place: Place, before: Manifest, after: Manifest) -> None:
    """Ingests of which neither manifest names a file: all of their runs were replaced, or they were killed."""
    for kind in (*KINDS, QUARANTINE):
        used = {file.split("/")[1] for manifest in (before, after) for file in manifest.files(kind)}
        for folder in place.folders(kind):
            number = folder.removeprefix("ingest=")
            if folder not in used and number.isdecimal() and int(number) < after.number:
                place.remove(f"{kind}/{folder}")
