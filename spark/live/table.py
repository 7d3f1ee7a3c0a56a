"""A run's live table, batch by batch; the same set of records gives the same table, wherever batches begin.

batch ──Spark──▶ work/N.parquet ──its new records──▶ records/M.parquet: record_files.py
                                 ──a few numbers a second──▶ facts ──with the times of its seconds──▶ both tables
                                 ──counts──▶ state.json, at last
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from spark.live.facts import LiveFacts, RecordsSummary, summarize_records
from spark.live.folder import LiveFolder
from spark.live.record_files import RecordFiles
from spark.live.records import completion_figures
from spark.summary import MEASURED, RATE, TIMES, WHOLE_NUMBERS, Row
from spark.tables.files import read_columns, read_whole, write_by_spark

SECONDS_AN_HOUR = 3600
LIVE_FIGURES = (RATE, *MEASURED)
LIVE_SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("second", pa.int32()),
        ("final", pa.bool_()),
        *((name, pa.int64() if name in WHOLE_NUMBERS else pa.float64()) for name in LIVE_FIGURES),
    ]
)


@dataclass(frozen=True, kw_only=True)
class LiveState:
    """The fields of state.json: the batches that are complete, and what their records do not say."""

    batches: int = 0
    """The number of complete batches, which is the number of the next one."""
    lines: int = 0
    """The lines of all complete batches: records, duplicates, and lines that could not be read."""
    lines_of_last: int = 0
    """The lines of the last complete batch."""
    records: int = 0
    late: int = 0
    """The records that came after the row of their second was final."""


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
        """Add a batch; return the rows that it changed, once they are on the disk.

        If a follower is killed, Spark gives the batch that it had begun to the next one. Killed before

        - the batch's records were written: nothing of it is there;
        - state.json was written: its records do not count yet (`RecordFiles`), and are written anew. Rows that were
          written already are written once more: they depend on the records alone, so they are the same;
        - Spark marked the batch as done: state.json counts it already, so nothing is to be added.
        """
        work = self._folder.work / f"{batch_id:06}.parquet"
        write_by_spark(batch, work)
        lines = read_whole(work)
        work.unlink()
        state = self._state
        is_counted_already = batch_id == state.batches - 1 and len(lines) == state.lines_of_last
        if is_counted_already:
            return []
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
        # The seconds of all its records, too: rows of a batch that is taken again may be there already, and unchanged.
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
        """Write the hours of these seconds anew, so that a batch takes as long on the second day as on the first."""
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


def write_rows(hidden: Path, files: Iterable[Path], run: str, rows: Iterable[Row]) -> None:
    """Replace each file by these rows; a reader sees the old ones or the new. `hidden` is on the files' file system."""
    table = pa.Table.from_pylist([{**row, "run": run} for row in rows], LIVE_SCHEMA)
    for file in files:
        pq.write_table(table, hidden)
        hidden.replace(file)


def read_rows(files: Iterable[Path]) -> dict[int, Row]:
    """Return the rows of these files by second."""
    rows: dict[int, Row] = {}
    for file in files:
        for row in read_columns(file, "second", "final", *LIVE_FIGURES).to_pylist():
            rows[row["second"]] = row
    return dict(sorted(rows.items()))
