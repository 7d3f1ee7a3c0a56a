"""The records of all batches, in few files: a batch adds its records to the last file, until that is full.

    lines of batch N ──without records that are there──▶ records/M.parquet, with the records of the batches M to N

A batch replaces the last file by rename, so a reader sees each record once at any moment. The column `batch` tells the
records of a batch whose follower was killed before it was complete: they are left out when the batch comes again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from exchange.records import COMPLETION
from spark.live.facts import RECORD_COLUMNS
from spark.tables.files import read_columns, read_whole

ROWS_A_FILE = 1 << 13
"""A file with this many rows is full: some ten minutes of a run with one gateway. A batch rewrites the last file."""
BATCH = "batch"
DESCRIBING = ["kind", "wall_ns", "problem"]


@dataclass(frozen=True)
class RecordFile:
    """A file of records, with what tells whether it has to be read."""

    path: Path
    seconds: frozenset[int]
    """The seconds of its completion times."""
    first_ns: int
    last_ns: int
    """The times at which its first and its last record were written."""


class RecordFiles:
    """The files in a folder. Of the records of batches, the first `batches` are complete, and others do not count.

    `work` is a folder of the same file system, for files under way.
    """

    def __init__(self, folder: Path, work: Path, batches: int) -> None:
        self._folder = folder
        self._work = work
        self._batches = batches
        self._files = [self._described(path) for path in sorted(folder.glob("*.parquet"))]
        self._last: pa.Table | None = None
        """The rows of the last file."""
        if self._files:
            self._last = self._complete(read_whole(self._files[-1].path))

    def tables(self) -> Iterator[pa.Table]:
        """Yield the records of each file, with the columns that a summary needs."""
        for file in self._files:
            yield self._complete(read_columns(file.path, *RECORD_COLUMNS, BATCH))

    def add(self, lines: pa.Table, batch: int) -> pa.Table:
        """Write those rows of a batch whose record no batch has yet; return them. Lines that are no record all stay."""
        new = self._without_known(lines)
        new = new.append_column(BATCH, pa.array(np.full(len(new), batch)))
        if self._last is not None and len(self._last) < ROWS_A_FILE:
            path = self._files.pop().path
            rows = pa.concat_tables([self._last, new]).combine_chunks()  # Arrow is slow with a chunk a batch
        else:
            path = self._folder / f"{batch:06}.parquet"
            rows = new
        hidden = self._work / f"records-{path.name}"
        pq.write_table(rows, hidden)
        hidden.replace(path)
        self._files.append(_description(path, rows))
        self._last = rows
        return new

    def with_seconds(self, seconds: Collection[int]) -> list[pa.Table]:
        """Return the rows, with kind and completion times, of all files that have completion times of these seconds."""
        tables = []
        for file in self._files:
            if not file.seconds.isdisjoint(seconds):
                tables.append(self._rows_of(file, "kind", COMPLETION))
        return tables

    def _rows_of(self, file: RecordFile, *columns: str) -> pa.Table:
        if self._last is not None and file is self._files[-1]:
            return self._last.select(columns)
        return read_columns(file.path, *columns)

    def _without_known(self, lines: pa.Table) -> pa.Table:
        """Return the rows without records that stand in them twice, or in a file."""
        good_rows = np.flatnonzero(pc.is_null(lines["problem"]).to_numpy())
        identities, first_places = np.unique(lines["identity"].to_numpy()[good_rows], return_index=True)
        is_known = np.isin(identities, self._identities_near(lines))
        stays = pc.is_valid(lines["problem"]).to_numpy().copy()
        stays[good_rows[first_places[~is_known]]] = True
        return lines.filter(pa.array(stays))

    def _identities_near(self, lines: pa.Table) -> npt.NDArray[np.int64]:
        """Return the identities in all files that may have records of the lines: equal ones have one time."""
        first_ns, last_ns = _times_of_writing(lines)
        identities = [np.empty(0, np.int64)]
        for file in self._files:
            if file.first_ns <= last_ns and first_ns <= file.last_ns:
                rows = self._rows_of(file, "identity", "problem")
                identities.append(rows.filter(pc.is_null(rows["problem"]))["identity"].to_numpy())
        return np.concatenate(identities)

    def _described(self, path: Path) -> RecordFile:
        return _description(path, self._complete(read_columns(path, *DESCRIBING, f"{COMPLETION}.second", BATCH)))

    def _complete(self, rows: pa.Table) -> pa.Table:
        """Return the rows of complete batches."""
        return rows.filter(pc.less(rows[BATCH], self._batches))


def _description(path: Path, rows: pa.Table) -> RecordFile:
    completions = rows.select(["kind", COMPLETION]).filter(pc.equal(rows["kind"], COMPLETION))
    seconds = pc.unique(pc.struct_field(completions[COMPLETION], "second")).to_pylist()
    return RecordFile(path, frozenset(seconds), *_times_of_writing(rows))


def _times_of_writing(rows: pa.Table) -> tuple[int, int]:
    """Return the first and the last time at which a record was written; for no records, an interval that is empty."""
    good = rows.select(DESCRIBING).filter(pc.is_null(rows["problem"]))
    bounds = pc.min_max(good["wall_ns"]).as_py()
    if bounds["min"] is None:
        return 0, -1
    return bounds["min"], bounds["max"]
