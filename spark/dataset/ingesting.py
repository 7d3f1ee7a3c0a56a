"""Ingests the spools of finished runs; a line that is in no other table is counted and put in quarantine.

spool files --parse--> records ─┬─▶ a file a kind and part ──replace──▶ tables
rows of the parts' other runs  ─┘
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StructField, StructType

from spark.dataset.folder import DatasetFolder, experiment_and_part, local_uri
from spark.dataset.replacing import EMPTIED, changing, replaced_file, staged
from spark.dataset.runs import PART, RUNS, RUNS_SCHEMA, IngestedRun, Name, free_parts, part_of_file, read_runs
from spark.dataset.views import EVENTS
from spark.run_facts import RunFacts
from spark.summary import local_rows
from spark.tables.files import escaped, persisted, spark_path
from spark.tables.schemas import INT, KEYS, KINDS
from spark.tables.spool import is_copy, read_records, rows_of_kind

QUARANTINE = "quarantine"
PROBLEMS = ("problem", "file", "example")
ROW_ORDER = ("experiment", PART, "run", "wall_ns", "source", "instrument", "sequence")
LEAST_PARTITIONS = 2
RUNS_A_PARTITION = 8
"""A partition is one task, which must hold its runs' lines in memory."""


@dataclass(frozen=True, kw_only=True)
class RunSource:
    """A finished run on this machine. `fingerprint` is of its run.json, and tells whether that was read before."""

    record: RunFacts
    spool: Path
    fingerprint: str

    @property
    def name(self) -> Name:
        return self.record.experiment, self.record.run

    @property
    def has_streams(self) -> bool:
        return (self.spool.parent / "orders.bin").exists()


@dataclass(frozen=True)
class Ingested:
    """The result of an ingest: the number of records that went in, and of lines that did not, by run and problem."""

    runs: int
    new_runs: int = 0
    records: int = 0
    unread: Mapping[Name, Mapping[str, int]] = field(default_factory=dict)


EventTables = Callable[[SparkSession, Sequence[RunSource], Sequence[int]], dict[str, DataFrame]]
"""A function of (session, runs with recorded streams, their parts) that returns tables, by name, with KEYS and PART."""


def ingest_runs(
    spark: SparkSession,
    folder: DatasetFolder,
    sources: Sequence[RunSource],
    again: bool,
    events: EventTables | None = None,
) -> Ingested:
    """Add the runs that are not in the tables yet, or all `again`, in place of former rows of theirs.

    With `events`, add the recorded streams, too, also of runs whose other rows are there.
    """
    with changing(folder):
        there = read_runs(folder)
        old = {(run.name, run.fingerprint): run.has_events for run in there}
        recorded = {source.name for source in sources if events and source.has_streams}
        complete = {key for key, has_events in old.items() if has_events or key[0] not in recorded}
        new = [source for source in sources if again or (source.name, source.fingerprint) not in complete]
        all_runs = {run.name for run in there} | {source.name for source in new}
        if not new:
            return Ingested(len(all_runs))
        parts = free_parts(there, [source.name for source in new])
        runs = [
            IngestedRun(
                record=source.record,
                fingerprint=source.fingerprint,
                part=part,
                has_events=source.name in recorded or old.get((source.name, source.fingerprint), False),
            )
            for source, part in zip(new, parts, strict=True)
        ]
        with persisted(read_records(_lines(spark, new, parts))) as records:
            good_lines, unread = _counted(records)
            tables = _tables(spark, records, runs)
            if events and (with_streams := [pair for pair in zip(new, parts, strict=True) if pair[0].has_streams]):
                tables |= events(spark, *zip(*with_streams, strict=True))
            _Replacement(spark, folder, runs).write(tables)
            had_events = {run.name for run in there if run.has_events}
            if former := [run for run in runs if run.name in had_events and not run.has_events]:
                _Replacement(spark, folder, former).remove_from(EVENTS - tables.keys())
    return Ingested(len(all_runs), len(new), good_lines, unread)


def _lines(spark: SparkSession, sources: Sequence[RunSource], parts: Sequence[int]) -> DataFrame:
    """Read (value, *KEYS, PART, file, is_copy); a copy stands earlier in its run's spool, too."""
    names = [(local_uri(spark, s.spool), *s.name, part) for s, part in zip(sources, parts, strict=True)]
    runs = spark.createDataFrame(names, f"folder string, {', '.join(f'{key} string' for key in KEYS)}, {PART} int")
    text = spark.read.text([spark_path(source.spool) for source in sources], pathGlobFilter="*.jsonl")
    path = fn.col("_metadata.file_path")
    lines = text.select(
        "value",
        fn.regexp_extract(path, "^(.*)/[^/]*$", 1).alias("folder"),
        fn.regexp_extract(path, "([^/]*)$", 1).alias("file"),
    )
    # A line without a run would be a mistake of ours, and must not be lost silently.
    run = fn.coalesce("run", fn.raise_error(fn.concat(fn.lit("no run is known at "), "folder"))).alias("run")
    named = lines.join(fn.broadcast(runs), "folder", "left").select("value", "experiment", run, PART, "file")
    partitions = max(LEAST_PARTITIONS, len(sources) // RUNS_A_PARTITION)
    return named.repartition(partitions, *KEYS).withColumn("is_copy", is_copy(*KEYS, order="file"))


def _counted(records: DataFrame) -> tuple[int, dict[Name, dict[str, int]]]:
    """Return the number of good lines; then, by run and problem, the number of the others."""
    good_lines = 0
    unread = defaultdict[Name, dict[str, int]](dict)
    for experiment, run, problem, lines in records.groupBy(*KEYS, "problem").count().collect():
        if problem is None:
            good_lines += lines
        else:
            unread[experiment, run][problem] = lines
    return good_lines, unread


def _tables(spark: SparkSession, records: DataFrame, runs: Sequence[IngestedRun]) -> dict[str, DataFrame]:
    """Return the new rows of each table, with KEYS and PART."""
    keys = (*KEYS, PART)
    tables = {kind: rows_of_kind(records, kind, keys) for kind in KINDS}
    tables[QUARANTINE] = records.where("problem IS NOT NULL").select(*keys, *PROBLEMS)
    rows = [run.row() for run in runs]
    tables[RUNS] = local_rows(spark, rows, StructType([*RUNS_SCHEMA, StructField(PART, INT)]))
    return tables


class _Replacement:
    """Stages, for each table, the files that hold `runs`: their rows, and the rows of other runs that share a file."""

    def __init__(self, spark: SparkSession, folder: DatasetFolder, runs: Sequence[IngestedRun]) -> None:
        self._spark = spark
        self._folder = folder
        self._parts = {(run.record.experiment, run.part) for run in runs}
        self._names = spark.createDataFrame([run.name for run in runs], f"{KEYS[0]} string, {KEYS[1]} string")

    def remove_from(self, names: Iterable[str]) -> None:
        """Stage these tables without the runs' rows."""
        paths = {name: self._folder.pattern(name) for name in names if self._folder.files(name)}
        rows = {name: self._spark.read.parquet(path).limit(0) for name, path in paths.items()}
        self.write({name: none.withColumns({KEYS[0]: fn.lit(""), PART: fn.lit(0)}) for name, none in rows.items()})

    def write(self, tables: Mapping[str, DataFrame]) -> None:
        """Write all tables at once, since Spark plans each for longer than it works on it."""
        with ThreadPoolExecutor(len(tables) or 1) as threads:
            list(threads.map(self._write, tables, tables.values()))

    def _write(self, table: str, new: DataFrame) -> None:
        replaced = [file for file in self._folder.files(table) if experiment_and_part(file) in self._parts]
        rows = new.unionByName(self._others(table, new.schema, replaced)) if replaced else new
        order = [name for name in ROW_ORDER if name in rows.columns]
        in_order = rows.repartition(max(LEAST_PARTITIONS, len(self._parts)), "experiment", PART)
        writer = in_order.sortWithinPartitions(*order).write.mode("overwrite").partitionBy("experiment", PART)
        writer.parquet(self._folder.path(staged(table)), compression="gzip")
        written = {replaced_file(file) for file in self._folder.files(staged(table))}
        for file in replaced:
            if staged(file) not in written:
                number = file.rpartition("part-")[2].removesuffix(".parquet")
                self._folder.touch(staged(f"{file.rpartition('/')[0]}/part={number}/{EMPTIED}"))

    def _others(self, table: str, rows_now: StructType, files: Sequence[str]) -> DataFrame:
        """Read the rows of these files that are of other runs."""
        schema = StructType([column for column in rows_now if column.name != PART])
        reader = self._spark.read.schema(schema).option("basePath", self._folder.path(table))
        rows = reader.parquet(*(escaped(self._folder.path(file)) for file in files))
        return rows.select("*", part_of_file()).join(fn.broadcast(self._names), list(KEYS), "left_anti")
