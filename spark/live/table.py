"""A run's live table, batch by batch; the same set of records gives the same table, wherever batches begin.

batch ──Spark──▶ work/N.parquet ──its new records──▶ records/M.parquet: record_files.py
                                 ──a few numbers a second──▶ facts ──with the times of its seconds──▶ both tables
                                 ──counts──▶ state.json, at last
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from spark.live.batch import (
    LIVE_FIGURES,
    LiveFacts,
    LiveState,
    RecordsSummary,
    read_rows,
    summarize_records,
    write_rows,
)
from spark.live.folder import LiveFolder
from spark.live.record_files import RecordFiles
from spark.live.records import completion_figures
from spark.summary import TIMES, Row
from spark.tables.files import read_whole, write_by_spark

SECONDS_AN_HOUR = 3600


@dataclass
class Totals:
    """Counts over all batches."""

    lines: int = 0
    records: int = 0
    late: int = 0
    problems: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By problem, the number of lines that could not be read, and the beginning of one."""

    @property
    def unread(self) -> int:
        return sum(lines for lines, _ in self.problems.values())

    @property
    def duplicates(self) -> int:
        return self.lines - self.records - self.unread

    def add(self, summary: RecordsSummary) -> None:
        self.records += summary.records
        for problem, (lines, example) in summary.unread.items():
            before, first = self.problems.get(problem, (0, example))
            self.problems[problem] = before + lines, first


class LiveTable:
    """Call `take` with batch after batch; after a restart, the first one may have been taken already."""

    def __init__(self, folder: LiveFolder) -> None:
        self._folder = folder
        self._state = self._read_state()
        self._files = RecordFiles(folder.records, folder.work, self._state.batches)
        self._facts = LiveFacts()
        self.totals = Totals(lines=self._state.lines, late=self._state.late)
        for records in self._files.tables():
            summary = summarize_records(records)
            self.totals.add(summary)
            self._facts.take(summary)
        if self.totals.records != self._state.records:
            raise folder.foreign_checkpoint_error(
                f"it has {self.totals.records} of the {self._state.records} records that state.json counts"
            )
        self.rows = read_rows(folder.seconds.glob("part-*.parquet"))
        self._times = {second: {name: row[name] for name in TIMES} for second, row in self.rows.items()}
        if self.rows:
            self.write_rows_of(self.rows)  # the follower before may have been killed between its two files

    @property
    def ended(self) -> bool:
        """True if every reporter's closing record is among the records."""
        return self._facts.ended

    def take(self, batch: DataFrame, batch_id: int) -> list[Row]:
        """Add a batch; return the rows that it changed, once they are on the disk."""
        work = self._folder.work / f"{batch_id:06}.parquet"
        write_by_spark(batch, work)
        lines = read_whole(work)
        work.unlink()
        state = self._state
        if batch_id == state.batches - 1 and len(lines) == state.lines_of_last:
            return []  # a follower was killed after the state was written, and before Spark's own mark
        if batch_id != state.batches:
            raise self._folder.foreign_checkpoint_error("its checkpoint does not fit its tables")
        return self.take_lines(lines)

    def take_lines(self, lines: pa.Table) -> list[Row]:
        """Add the lines of the next batch; return the rows that they changed, once they are on the disk."""
        new = self._files.add(lines, self._state.batches)
        summary = summarize_records(new)
        self.totals.add(summary)
        self.totals.lines += len(lines)
        self.totals.late += sum(map(self._facts.is_final, summary.seconds))
        rows = self._changed_rows(summary, self._facts.take(summary))
        # A batch that is taken again finds its rows there, and writes their hours once more.
        self.write_rows_of([*summary.seconds, *(row["second"] for row in rows)])
        self._state = LiveState(
            batches=self._state.batches + 1,
            lines=self.totals.lines,
            lines_of_last=len(lines),
            records=self.totals.records,
            late=self.totals.late,
        )
        self._folder.replace(self._folder.state, msgspec.json.encode(self._state))
        return rows

    def _read_state(self) -> LiveState:
        """Return the state of the complete batches; that of no batches if there is none yet."""
        file = self._folder.state
        if not file.exists():
            return LiveState()
        try:
            return msgspec.json.decode(file.read_bytes(), type=LiveState)
        except msgspec.MsgspecError as error:
            raise self._folder.foreign_checkpoint_error(f"{file.name} is damaged") from error

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

    def _changed_rows(self, summary: RecordsSummary, changed: set[int]) -> list[Row]:
        seconds = set(summary.completion_seconds)
        self._times |= completion_figures(seconds, self._files.with_seconds(seconds))
        rows = []
        for second in sorted(changed):
            figures = {**self._times.get(second, {}), **self._facts.row(second)}
            final = self._facts.is_final(second)
            row = {"second": second, "final": final, **{name: figures.get(name) for name in LIVE_FIGURES}}
            if row != self.rows.get(second):
                self.rows[second] = row
                rows.append(row)
        return rows
