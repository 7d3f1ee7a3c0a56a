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
from spark.dataset.runs import PART, RUNS, RUNS_SCHEMA, IngestedRun, Name, part_of_file, parts_of, read_runs
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
    """A finished run on this machine. `fingerprint` is a hash of run.json, by which a run read before is known."""

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
    """The result of an ingest. `unread` has the number of lines in quarantine, by run and problem."""

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
    """Add the runs that are not in the tables yet, or all `again`; their rows replace earlier rows of the same runs.

    With `events`, add the recorded streams, too, also of runs whose other rows are in the tables already.
    """
    with changing(folder):
        earlier = read_runs(folder)
        new = sources if again else _sources_to_add(sources, earlier, with_events=events is not None)
        all_names = {run.name for run in earlier} | {source.name for source in new}
        if not new:
            return Ingested(len(all_names))
        parts = parts_of([source.name for source in new], earlier)
        runs = _ingested_runs(new, parts, earlier, with_events=events is not None)
        with persisted(read_records(_lines(spark, new, parts))) as records:
            good_lines, unread = _count_lines(records)
            tables = _tables(spark, records, runs)
            if events is not None:
                tables |= _event_tables(spark, events, new, parts)
            _Replacement(spark, folder, runs, earlier).write(tables)
            had_events = {run.name for run in earlier if run.has_events}
            without_events_now = [run for run in runs if run.name in had_events and not run.has_events]
            if without_events_now:
                _Replacement(spark, folder, without_events_now, earlier).remove_from(EVENTS - tables.keys())
    return Ingested(len(all_names), len(new), good_lines, unread)


def _sources_to_add(sources: Sequence[RunSource], earlier: Sequence[IngestedRun], with_events: bool) -> list[RunSource]:
    """Return the sources without those that the tables hold already, with their events if these are asked for."""
    has_events = {(run.name, run.fingerprint): run.has_events for run in earlier}
    to_add = []
    for source in sources:
        key = (source.name, source.fingerprint)
        lacks_events = with_events and source.has_streams and not has_events.get(key, False)
        if key not in has_events or lacks_events:
            to_add.append(source)
    return to_add


def _ingested_runs(
    sources: Sequence[RunSource], parts: Sequence[int], earlier: Sequence[IngestedRun], with_events: bool
) -> list[IngestedRun]:
    """Return the runs as the table of runs will have them; unchanged runs keep the events that they have."""
    with_events_before = {(run.name, run.fingerprint) for run in earlier if run.has_events}
    runs = []
    for source, part in zip(sources, parts, strict=True):
        gets_events = with_events and source.has_streams
        keeps_events = (source.name, source.fingerprint) in with_events_before
        runs.append(
            IngestedRun(
                record=source.record,
                fingerprint=source.fingerprint,
                part=part,
                has_events=gets_events or keeps_events,
            )
        )
    return runs


def _event_tables(
    spark: SparkSession, events: EventTables, sources: Sequence[RunSource], parts: Sequence[int]
) -> dict[str, DataFrame]:
    """Return the tables of events of the sources with recorded streams; none if no source has any."""
    recorded = []
    parts_of_recorded = []
    for source, part in zip(sources, parts, strict=True):
        if source.has_streams:
            recorded.append(source)
            parts_of_recorded.append(part)
    if not recorded:
        return {}
    return events(spark, recorded, parts_of_recorded)


def _lines(spark: SparkSession, sources: Sequence[RunSource], parts: Sequence[int]) -> DataFrame:
    """Return lines as (value, *KEYS, PART, file, is_copy); a copy is a line that stands earlier in the spool, too."""
    run_by_folder = []
    for source, part in zip(sources, parts, strict=True):
        experiment, run = source.name
        run_by_folder.append((local_uri(spark, source.spool), experiment, run, part))
    runs = spark.createDataFrame(run_by_folder, f"folder string, experiment string, run string, {PART} int")
    text = spark.read.text([spark_path(source.spool) for source in sources], pathGlobFilter="*.jsonl")
    path = fn.col("_metadata.file_path")
    lines = text.select(
        "value",
        fn.regexp_extract(path, "^(.*)/[^/]*$", 1).alias("folder"),
        fn.regexp_extract(path, "([^/]*)$", 1).alias("file"),
    )
    # A line without a run would be a mistake of ours, and must not be lost silently.
    error = fn.raise_error(fn.concat(fn.lit("no run is known at "), "folder"))
    known_run = fn.coalesce("run", error).alias("run")
    joined = lines.join(fn.broadcast(runs), "folder", "left")
    lines_of_runs = joined.select("value", "experiment", known_run, PART, "file")
    partitions = max(LEAST_PARTITIONS, len(sources) // RUNS_A_PARTITION)
    return lines_of_runs.repartition(partitions, *KEYS).withColumn("is_copy", is_copy(*KEYS, order="file"))


def _count_lines(records: DataFrame) -> tuple[int, dict[Name, dict[str, int]]]:
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

    def __init__(
        self,
        spark: SparkSession,
        folder: DatasetFolder,
        runs: Sequence[IngestedRun],
        earlier: Sequence[IngestedRun],
    ) -> None:
        """`earlier` are the runs that the tables hold before."""
        self._spark = spark
        self._folder = folder
        self._parts = {(run.record.experiment, run.part) for run in runs}
        names = {run.name for run in runs}
        self._shared_parts = {(run.record.experiment, run.part) for run in earlier if run.name not in names}
        """Parts with other runs. A file of any other part is made anew, and need not be readable."""
        self._names = spark.createDataFrame([run.name for run in runs], f"{KEYS[0]} string, {KEYS[1]} string")

    def remove_from(self, names: Iterable[str]) -> None:
        """Stage these tables without the runs' rows."""
        tables = {}
        for name in names:
            if self._folder.files(name):
                no_rows = self._spark.read.parquet(self._folder.pattern(name)).limit(0)
                tables[name] = no_rows.withColumns({"experiment": fn.lit(""), PART: fn.lit(0)})
        self.write(tables)

    def write(self, tables: Mapping[str, DataFrame]) -> None:
        """Write all tables at once, since Spark plans each for longer than it works on it."""
        with ThreadPoolExecutor(len(tables) or 1) as threads:
            list(threads.map(self._write, tables, tables.values()))

    def _write(self, table: str, new: DataFrame) -> None:
        replaced = [file for file in self._folder.files(table) if experiment_and_part(file) in self._parts]
        rows = new
        shared = [file for file in replaced if experiment_and_part(file) in self._shared_parts]
        if shared:
            rows = new.unionByName(self._rows_of_other_runs(table, new.schema, shared))
        order = [name for name in ROW_ORDER if name in rows.columns]
        in_order = rows.repartition(max(LEAST_PARTITIONS, len(self._parts)), "experiment", PART)
        writer = in_order.sortWithinPartitions(*order).write.mode("overwrite").partitionBy("experiment", PART)
        writer.parquet(self._folder.path(staged(table)), compression="gzip")
        written = {replaced_file(file) for file in self._folder.files(staged(table))}
        for file in replaced:
            if staged(file) not in written:
                folder = file.rpartition("/")[0]
                _, part = experiment_and_part(file)
                self._folder.touch(staged(f"{folder}/part={part}/{EMPTIED}"))

    def _rows_of_other_runs(self, table: str, new_schema: StructType, files: Sequence[str]) -> DataFrame:
        """Read the rows of these files that are of other runs."""
        schema = StructType([column for column in new_schema if column.name != PART])
        reader = self._spark.read.schema(schema).option("basePath", self._folder.path(table))
        rows = reader.parquet(*(escaped(self._folder.path(file)) for file in files))
        return rows.select("*", part_of_file()).join(fn.broadcast(self._names), list(KEYS), "left_anti")
