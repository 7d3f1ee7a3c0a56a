"""Ingests the spools of finished runs, a run at a time, in this process and without Spark.

    spool of a run ──▶ a table a kind, quarantine ─┐
    its streams, if events are asked for ──────────┴─▶ the files of its part ──replace──▶ tables

A line that does not fit the table of its kind is counted and put in quarantine. Memory holds one run at a time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

import pyarrow as pa

from spark.dataset.folder import DatasetFolder
from spark.dataset.part_files import RUN, PartFiles
from spark.dataset.replacing import replacing_files
from spark.dataset.runs import RUNS, RUNS_SCHEMA, IngestedRun, Name, parts_of, read_runs
from spark.errors import DatasetUnreadableError
from spark.run_facts import ALONE, RunFacts
from spark.tables.schemas import EVENTS, KINDS, table_schema
from spark.tables.spool_by_arrow import QUARANTINE as QUARANTINE_COLUMNS
from spark.tables.spool_by_arrow import SpoolTables, tables_of_spool

QUARANTINE = "quarantine"
EXPERIMENT = "experiment"


@dataclass(frozen=True, kw_only=True)
class RunSource:
    """A finished run on this machine."""

    facts: RunFacts
    spool: Path
    fingerprint: str
    """The size and time of change of run.json, by which a run that was read before is known."""

    @property
    def name(self) -> Name:
        return self.facts.experiment, self.facts.run

    @property
    def has_streams(self) -> bool:
        return (self.spool.parent / "orders.bin").exists()

    @property
    def spool_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.spool.glob("*.jsonl"))


class EventsChange(Enum):
    """What an ingest does to the rows of a run in the tables of events."""

    MAKES = auto()
    """It makes them, in place of those that are there."""
    KEEPS = auto()
    REMOVES = auto()
    """It removes them, since they are of an earlier run.json, and makes no others."""
    NONE = auto()
    """There are none, and it makes none."""


@dataclass(frozen=True)
class Ingested:
    """The result of an ingest."""

    runs: int
    """All runs that are in the tables now."""
    new_runs: int = 0
    records: int = 0
    """The records of the new runs."""
    unread: Mapping[Name, Mapping[str, int]] = field(default_factory=dict)
    """The number of lines in quarantine, by run and problem."""


@dataclass(frozen=True)
class EventTables:
    """The tables of market events, which the engine makes above spark/."""

    schemas: Mapping[str, pa.Schema]
    """The columns of each table, with those of the run."""
    rows_of: Callable[[RunSource, SpoolTables], Iterator[tuple[str, pa.Table]]]
    """Yields rows of the tables, each with the table's name, from a run with recorded streams. RunUnreadableError if
    the streams are damaged."""


NO_EVENTS = EventTables({}, lambda _source, _spool: iter(()))


def ingest_runs(
    folder: DatasetFolder, sources: Sequence[RunSource], again: bool, events: EventTables | None = None
) -> Ingested:
    """Add the runs that are not in the tables yet, or all `again`; their rows replace earlier rows of the same runs.

    With `events`, add the recorded streams, too, also of runs whose other rows are in the tables already.
    DatasetUnreadableError if two sources have one name, or if a run would be in the tables under two names.
    """
    _refuse_shared_names(sources)
    with replacing_files(folder):
        earlier = read_runs(folder)
        _refuse_second_names(sources, earlier, folder.url)
        new = sources if again else _sources_to_add(sources, earlier, with_events=events is not None)
        all_names = {run.name for run in earlier} | {source.name for source in new}
        if not new:
            return Ingested(len(all_names))
        job = _Ingest(folder, earlier, events)
        for (experiment, part), sources_of_part in job.by_part(new).items():
            job.write_part(experiment, part, sources_of_part)
        unread = {name: dict(problems) for name, problems in job.unread.items()}
    return Ingested(len(all_names), len(new), job.records, unread)


def _refuse_shared_names(sources: Sequence[RunSource]) -> None:
    """Raise DatasetUnreadableError if two sources have one name, by which their rows could not be told apart."""
    folders: dict[Name, Path] = {}
    for source in sources:
        folder = source.spool.parent
        if source.name in folders:
            experiment, run = source.name
            raise DatasetUnreadableError(
                f"{folders[source.name]} and {folder} would both be the run {run} of {experiment}: "
                "rename one of the two folders"
            )
        folders[source.name] = folder


def _refuse_second_names(sources: Sequence[RunSource], earlier: Sequence[IngestedRun], url: str) -> None:
    """Raise DatasetUnreadableError if the tables have a run of a folder as one of ALONE, and so would have it twice."""
    in_sources = {(source.name, source.fingerprint) for source in sources}
    in_tables = {(run.name, run.fingerprint) for run in earlier}
    for source in sources:
        experiment, run = source.name
        name_as_alone = ((ALONE, run), source.fingerprint)
        if experiment != ALONE and name_as_alone in in_tables and name_as_alone not in in_sources:
            raise DatasetUnreadableError(
                f"{url} has {run} of {experiment} as a run of {ALONE} (an older version wrote it, or an ingest of "
                f"{experiment} by itself), and would have it twice: remove that folder, or name another by --tables, "
                "and make the tables again, with exchange spark ingest"
            )


def _sources_to_add(sources: Sequence[RunSource], earlier: Sequence[IngestedRun], with_events: bool) -> list[RunSource]:
    """Return the sources that the tables lack; if events are asked for, also those whose events the tables lack."""
    has_events = {(run.name, run.fingerprint): run.has_events for run in earlier}
    to_add = []
    for source in sources:
        key = (source.name, source.fingerprint)
        lacks_events = with_events and source.has_streams and not has_events.get(key, False)
        if key not in has_events or lacks_events:
            to_add.append(source)
    return to_add


class _Ingest:
    """An ingest under way: the tables before, and what has been read so far."""

    def __init__(self, folder: DatasetFolder, earlier: Sequence[IngestedRun], events: EventTables | None) -> None:
        self._folder = folder
        self._earlier = {run.name: run for run in earlier}
        self._makes_events = events is not None
        self._events = events or NO_EVENTS
        self._existing: set[str] = set()
        """The files of all tables before."""
        for table in (*KINDS, QUARANTINE, RUNS, *EVENTS):
            self._existing.update(folder.files(table))
        self.records = 0
        self.unread: defaultdict[Name, Counter[str]] = defaultdict(Counter)

    def by_part(self, sources: Sequence[RunSource]) -> dict[tuple[str, int], list[tuple[RunSource, int]]]:
        """Return the sources of each part of an experiment, with the bytes of their spools."""
        sizes = [source.spool_bytes for source in sources]
        new = [(source.name, size) for source, size in zip(sources, sizes, strict=True)]
        by_part: defaultdict[tuple[str, int], list[tuple[RunSource, int]]] = defaultdict(list)
        for source, size, part in zip(sources, sizes, parts_of(new, self._earlier.values()), strict=True):
            by_part[source.facts.experiment, part].append((source, size))
        return by_part

    def write_part(self, experiment: str, part: int, sources: Sequence[tuple[RunSource, int]]) -> None:
        """Stage the files of a part: the rows of the runs that are in it already, and those of the sources."""
        schemas = {name: _with_run_column(table_schema(name)) for name in KINDS}
        schemas[QUARANTINE] = _with_run_column(QUARANTINE_COLUMNS)
        schemas[RUNS] = _without_experiment(RUNS_SCHEMA)
        for table, schema in self._events.schemas.items():
            schemas[table] = _without_experiment(schema)
        runs = []
        runs_with_changed_events = []
        for source, spool_bytes in sources:
            change = self._change_of_events(source)
            runs.append(_run_of(source, spool_bytes, part, change))
            if change in (EventsChange.MAKES, EventsChange.REMOVES):
                runs_with_changed_events.append(source.facts.run)
        names = [run.facts.run for run in runs]
        runs_before = [run.facts.run for run in self._earlier_in(experiment, part)]
        with PartFiles(self._folder, experiment, part, schemas, self._existing, runs_before) as files:
            for table in (*KINDS, QUARANTINE, RUNS):
                files.replace(table, names)
            if runs_with_changed_events:
                for table in EVENTS:
                    files.replace(table, runs_with_changed_events)
            for source, _ in sources:
                self._add(files, source)
            rows = pa.Table.from_pylist([run.row() for run in runs], RUNS_SCHEMA)
            files.add(RUNS, rows.drop_columns([EXPERIMENT]))

    def _add(self, files: PartFiles, source: RunSource) -> None:
        """Add the rows of a run."""
        spool = tables_of_spool(source.spool)
        for kind, rows in spool.kinds.items():
            files.add(kind, _with_run(rows, source))
        files.add(QUARANTINE, _with_run(spool.quarantine, source))
        self.records += spool.records
        if spool.quarantine.num_rows:
            self.unread[source.name].update(spool.quarantine["problem"].to_pylist())
        if source.has_streams:
            for table, rows in self._events.rows_of(source, spool):
                files.add(table, rows.drop_columns([EXPERIMENT]))

    def _change_of_events(self, source: RunSource) -> EventsChange:
        if self._makes_events and source.has_streams:
            return EventsChange.MAKES
        earlier = self._earlier.get(source.name)
        if earlier is None or not earlier.has_events:
            return EventsChange.NONE
        return EventsChange.KEEPS if earlier.fingerprint == source.fingerprint else EventsChange.REMOVES

    def _earlier_in(self, experiment: str, part: int) -> list[IngestedRun]:
        """Return the runs that the part holds before."""
        return [run for run in self._earlier.values() if (run.facts.experiment, run.part) == (experiment, part)]


def _run_of(source: RunSource, spool_bytes: int, part: int, change: EventsChange) -> IngestedRun:
    """Return the run as the table of runs will have it."""
    return IngestedRun(
        facts=source.facts,
        fingerprint=source.fingerprint,
        part=part,
        spool_bytes=spool_bytes,
        has_events=change in (EventsChange.MAKES, EventsChange.KEEPS),
    )


def _with_run_column(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a table of many runs: the run's name comes first; its experiment is in the path."""
    return pa.schema([pa.field(RUN, pa.string(), nullable=False), *schema])


def _without_experiment(schema: pa.Schema) -> pa.Schema:
    return schema.remove(schema.get_field_index(EXPERIMENT))


def _with_run(rows: pa.Table, source: RunSource) -> pa.Table:
    """Return the rows with the run's name in front."""
    name = pa.repeat(pa.scalar(source.facts.run, pa.string()), rows.num_rows)
    return rows.add_column(0, pa.field(RUN, pa.string(), nullable=False), name)
