"""Writes the files of a part: the rows of other runs that the files hold already, and the rows of new runs.

    KIND/experiment=E/part-N.parquet ── rows of other runs ──▶ .staged/KIND/experiment=E/part-N.parquet
    rows of new runs ─────────────────────────────────────────┘

A part is the files of all tables with the rows of the same runs. Memory holds a row group of each table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark.dataset.folder import DatasetFolder
from spark.dataset.replacing import mark_as_emptied, staged
from spark.errors import DatasetUnreadableError
from spark.tables.schemas import part_file
from spark.tables.table_writer import TableWriter

RUN = "run"


class PartFiles:
    """A context. At its end the files are staged; they replace the files of the tables when the job is done."""

    def __init__(
        self,
        folder: DatasetFolder,
        experiment: str,
        part: int,
        schemas: Mapping[str, pa.Schema],
        existing: Collection[str],
        runs_before: Collection[str],
    ) -> None:
        """`schemas` has the columns of each table, without those in a path; `existing` are the files of all tables.

        `runs_before` are the runs that the part holds before.
        """
        self._folder = folder
        self._experiment = experiment
        self._part = part
        self._schemas = schemas
        self._existing = existing
        self._runs_before = frozenset(runs_before)
        self._replaced: set[str] = set()
        self._writers: dict[str, TableWriter] = {}
        self._files = ExitStack()

    def __enter__(self) -> PartFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.__exit__(kind, error, trace)
        if error is not None:
            return
        with_rows = {table for table, writer in self._writers.items() if writer.rows}
        for table in self._replaced - with_rows:
            file = self._file(table)
            # A writer without rows has staged an empty file, which would replace the table's.
            if file in self._existing or table in self._writers:
                mark_as_emptied(self._folder, file)

    def replace(self, table: str, runs: Collection[str]) -> None:
        """Let the rows of these runs be replaced: copy those of all others. Call it before rows are added.

        DatasetUnreadableError if the table's file is damaged and holds other runs.
        """
        self._replaced.add(table)
        file = self._file(table)
        if file not in self._existing or self._has_no_others(runs):
            return
        try:
            with self._folder.readable(file) as path, pq.ParquetFile(path) as parquet:
                schema = self._schemas.get(table, parquet.schema_arrow)
                writer = self._writer(table, schema)
                for number in range(parquet.num_row_groups):
                    rows = parquet.read_row_group(number)
                    is_replaced = pc.is_in(rows[RUN], pa.array(runs, pa.string()))
                    writer.add(rows.filter(pc.invert(is_replaced)).cast(schema))
        except (pa.ArrowException, OSError, KeyError) as error:
            raise DatasetUnreadableError(
                f"{file} in {self._folder.url} is damaged ({' '.join(str(error).split())}): "
                "make it anew with exchange spark ingest RESULTS --again"
            ) from error

    def add(self, table: str, rows: pa.Table) -> None:
        """Add rows of new runs to a table that `replace` was called for."""
        assert table in self._replaced, table
        if rows.num_rows:
            self._writer(table, self._schemas[table]).add(rows)

    def _has_no_others(self, runs: Collection[str]) -> bool:
        """Return whether the part holds these runs only, so that a file is made anew, and need not be readable."""
        return self._runs_before.issubset(runs)

    def _file(self, table: str) -> str:
        return part_file(table, self._experiment, self._part)

    def _writer(self, table: str, schema: pa.Schema) -> TableWriter:
        if table not in self._writers:
            path = self._files.enter_context(self._folder.writable(staged(self._file(table))))
            self._writers[table] = self._files.enter_context(TableWriter(path, schema))
        return self._writers[table]
