"""A run's live table, batch by batch; the same set of records gives the same table, wherever batches begin.

batch ──Spark──▶ work/N.parquet ──no duplicates: rename, else Spark once more──▶ records/N.parquet
records/N.parquet ──a few numbers a second──▶ facts ──with the times of its seconds──▶ both tables, notes/N.json
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
from pyspark.sql import DataFrame

from spark.live.batch import FIGURES, BatchSummary, LiveFacts, Row, read_rows, summarize_batch, write_rows
from spark.live.folder import LiveFolder
from spark.live.records import Identities, completion_figures, read_identities, without_duplicates
from spark.summary import TIMES
from spark.tables.files import spark_path, write_table

SECONDS_AN_HOUR = 3600


@dataclass
class Totals:
    """Counts over all batches."""

    records: int = 0
    late: int = 0
    duplicates: int = 0
    problems: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By problem, the number of lines that could not be read, and the beginning of one."""

    @property
    def unread(self) -> int:
        return sum(lines for lines, _ in self.problems.values())

    def add(self, batch: BatchSummary) -> None:
        self.records += batch.records
        self.late += batch.late
        self.duplicates += batch.duplicates
        for problem, (lines, example) in batch.unread.items():
            before, first = self.problems.get(problem, (0, example))
            self.problems[problem] = before + lines, first


class LiveTable:
    """Call `take` with batch after batch; after a restart, the first one may have been taken already."""

    def __init__(self, folder: LiveFolder) -> None:
        self._folder = folder
        self._load()
        if self.rows:
            self.write_rows_of(self.rows)  # the one before may have been killed between its two files

    @property
    def ended(self) -> bool:
        """True if every reporter's closing record is among the records."""
        return self._facts.ended

    def take(self, batch: DataFrame, batch_id: int) -> list[Row]:
        """Add a batch; return the rows that it changed, once they are on the disk."""
        if batch_id == self._next - 1:  # killed after our summary was written, and before Spark's own mark
            self._load(before=batch_id)
        if batch_id != self._next:
            raise self._folder.foreign_checkpoint_error("its checkpoint does not fit its tables")
        identities = self._write_records(batch, batch_id)
        summary = summarize_batch(self._file("records", batch_id), batch_id, identities)
        summary = replace(summary, late=sum(map(self._facts.is_final, summary.seconds)))
        rows = self._changed_rows(summary, self._add(summary))
        # A batch that is taken again finds its rows there, and writes their hours once more.
        self.write_rows_of([*summary.seconds, *(row["second"] for row in rows)])
        self._folder.replace(self._folder.notes / f"{batch_id:06}.json", msgspec.json.encode(summary))
        return rows

    def _load(self, before: int | None = None) -> None:
        """Read the notes and rows of complete batches; only those below `before`, if it is given."""
        self._facts = LiveFacts()
        self.totals = Totals()
        self._next = 0
        self._by_second: defaultdict[int, set[int]] = defaultdict(set)
        self._by_moment: defaultdict[int, set[int]] = defaultdict(set)
        for file in sorted(self._folder.notes.glob("[0-9]*.json"))[:before]:
            try:
                summary = msgspec.json.decode(file.read_bytes(), type=BatchSummary)
            except msgspec.MsgspecError as error:
                raise self._folder.foreign_checkpoint_error(f"{file.name} is damaged") from error
            if summary.batch_id != self._next:
                raise self._folder.foreign_checkpoint_error(f"it lacks the note of batch {self._next}")
            self._add(summary)
        self.rows = read_rows(self._folder.seconds.glob("part-*.parquet"))
        self._times = {second: {name: row[name] for name in TIMES} for second, row in self.rows.items()}

    def _add(self, batch: BatchSummary) -> set[int]:
        """Add a batch's summary; return the seconds that it may change."""
        self._next = batch.batch_id + 1
        self.totals.add(batch)
        for index, keys in ((self._by_second, batch.timed), (self._by_moment, batch.moments)):
            for key in keys:
                index[key].add(batch.batch_id)
        return self._facts.take(batch)

    def _write_records(self, batch: DataFrame, batch_id: int) -> Identities:
        """Write the batch's records but those that are there already; return the identities of all."""
        work = self._file("work", batch_id)
        file = self._file("records", batch_id)
        write_table(batch, work)
        new = read_identities(work)
        near = {other for moment in new.moments for other in self._by_moment.get(moment, ())}
        earlier: list[int] = []
        for other in sorted(near):
            identities = read_identities(self._file("records", other)).identities
            if np.isin(new.identities, identities).any():
                earlier.append(other)
        if not earlier and len(np.unique(new.identities)) == len(new.identities):
            work.replace(file)
            return new
        read = batch.sparkSession.read.schema(batch.schema)
        files = [spark_path(self._file("records", other)) for other in earlier]
        before = read.parquet(*files) if files else None
        write_table(without_duplicates(read.parquet(spark_path(work)), before), once := work.with_suffix(".once"))
        once.replace(file)
        work.unlink()
        return new

    def write_rows_of(self, changed: Iterable[int]) -> None:
        """Write the hours of these seconds anew, so that a batch takes as long on the second day as on the first.

        The rows depend on the records alone: written twice, they are the same.
        """
        folder = self._folder
        hours = {second // SECONDS_AN_HOUR for second in changed}
        for hour in sorted(hours or {0}):  # readers find a file, even if it has no rows yet
            first = hour * SECONDS_AN_HOUR
            seconds = range(first, first + SECONDS_AN_HOUR)
            rows = [self.rows[second] for second in seconds if second in self.rows]
            write_rows(folder.work / "seconds", folder.files_of_hour(hour), folder.run.resolve().name, rows)

    def _changed_rows(self, batch: BatchSummary, changed: set[int]) -> list[Row]:
        files = {batch_id for second in batch.timed for batch_id in self._by_second[second]}
        self._times |= completion_figures(batch.timed, [self._file("records", batch_id) for batch_id in sorted(files)])
        rows = []
        for second in sorted(changed):
            figures = {**self._times.get(second, {}), **self._facts.row(second)}
            final = self._facts.is_final(second)
            row = {"second": second, "final": final, **{name: figures.get(name) for name in FIGURES}}
            if row != self.rows.get(second):
                self.rows[second] = row
                rows.append(row)
        return rows

    def _file(self, part: str, batch_id: int) -> Path:
        return self._folder.path / part / f"{batch_id:06}.parquet"
