"""A run's live table, batch by batch; the same set of records gives the same table, wherever batches begin.

batch ──Spark──▶ work/N.parquet ──nothing said twice: rename, else Spark once more──▶ records/N.parquet
records/N.parquet ──a few numbers a second──▶ facts ──with the times of its seconds──▶ seconds/N.parquet, notes/N.json
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import DataFrame

from spark.live.facts import LiveFacts
from spark.live.folder import LiveFolder, replace_file
from spark.live.note import Note, Said, note_of, read_note, said_in
from spark.live.records import once
from spark.live.rows import FIGURES, Row, live_rows, times_of, write_rows
from spark.summary.columns import TIMES
from spark.tables.files import spark_path, write_table


@dataclass
class Totals:
    """Over all batches."""

    records: int = 0
    late: int = 0
    duplicates: int = 0
    problems: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Lines that could not be read, by reason: how many, and the beginning of one."""

    @property
    def unread(self) -> int:
        return sum(lines for lines, _ in self.problems.values())

    def add(self, note: Note) -> None:
        self.records += note.records
        self.late += note.late
        self.duplicates += note.duplicates
        for problem, (lines, example) in note.unread.items():
            before, first = self.problems.get(problem, (0, example))
            self.problems[problem] = before + lines, first


class LiveTable:
    """`take` is called batch after batch; after a restart, once more with one that may have been taken already."""

    def __init__(self, folder: LiveFolder) -> None:
        self._folder = folder
        self._load(None)

    @property
    def ended(self) -> bool:
        """Whether the closing record is among the records."""
        return self._facts.ended

    def take(self, batch: DataFrame, batch_id: int) -> list[Row]:
        """The rows that this batch changed, once they are on the disk."""
        if batch_id == self._next - 1:  # killed between its note and Spark's own
            self._load(before=batch_id)
        if batch_id != self._next:
            raise self._folder.foreign("its checkpoint does not fit its tables")
        said = self._write_records(batch, batch_id)
        note = note_of(self._file("records", batch_id), batch_id, said)
        note = replace(note, late=sum(map(self._facts.is_final, note.seconds)))
        rows = self._changed_rows(note, self._add(note))
        write_rows(self._file("seconds", batch_id), batch_id, rows)
        replace_file(self._folder.notes / f"{batch_id:06}.json", note.encoded())
        return rows

    def _load(self, before: int | None = None) -> None:
        """What the batches left, as far as they came to their end."""
        self._facts, self.totals, self._next = LiveFacts(), Totals(), 0
        self._timed: defaultdict[int, set[int]] = defaultdict(set)
        self._said_at: defaultdict[int, set[int]] = defaultdict(set)
        for file in sorted(self._folder.notes.glob("[0-9]*.json"))[:before]:
            try:
                note = read_note(file)
            except (ValueError, TypeError, KeyError) as error:
                raise self._folder.foreign(f"{file.name} is damaged") from error
            if note.batch_id != self._next:
                raise self._folder.foreign(f"it lacks the note of batch {self._next}")
            self._add(note)
        self.rows = live_rows(self._folder.seconds, self._next)
        self._times = {second: {name: row[name] for name in TIMES} for second, row in self.rows.items()}

    def _add(self, note: Note) -> set[int]:
        """The seconds that it may change."""
        self._next = note.batch_id + 1
        self.totals.add(note)
        for index, keys in ((self._timed, note.timed), (self._said_at, note.moments)):
            for key in keys:
                index[key].add(note.batch_id)
        return self._facts.take(note)

    def _write_records(self, batch: DataFrame, batch_id: int) -> Said:
        """What the batch said; records that are there already are left out."""
        work, file = self._file("work", batch_id), self._file("records", batch_id)
        write_table(batch, work)
        said = said_in(work)
        near = {other for moment in said.moments for other in self._said_at.get(moment, ())}
        earlier = [other for other in sorted(near) if said.shares_any(said_in(self._file("records", other)))]
        if not earlier and not said.has_twice:
            work.replace(file)
            return said
        read = batch.sparkSession.read.schema(batch.schema)
        files = [spark_path(self._file("records", other)) for other in earlier]
        write_table(once(read.parquet(spark_path(work)), read.parquet(*files) if files else None), file)
        work.unlink()
        return said

    def _changed_rows(self, note: Note, changed: set[int]) -> list[Row]:
        files = {batch_id for second in note.timed for batch_id in self._timed[second]}
        self._times |= times_of(note.timed, [self._file("records", batch_id) for batch_id in sorted(files)])
        rows = []
        for second in sorted(changed):
            known = {**self._times.get(second, {}), **self._facts.row(second)}
            row = {
                "second": second,
                "final": self._facts.is_final(second),
                **{name: known.get(name) for name in FIGURES},
            }
            if row != self.rows.get(second):
                self.rows[second] = row
                rows.append(row)
        return rows

    def _file(self, part: str, batch_id: int) -> Path:
        return self._folder.path / part / f"{batch_id:06}.parquet"
