"""Writes a Parquet file in bounded memory: rows are collected until they make a row group.

It imports no pyspark, since `exchange simulate` writes tables without Spark.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS_A_GROUP = 1 << 20
BYTES_A_GROUP = 1 << 26
"""A row group ends at this many rows or bytes; the rows that are added at once are never parted."""
DELTA_ENCODED = ("sequence", "time_ns", "id", "resting_id", "incoming_id", "wall_ns", "monotonic_ns")
NUMBERS_BY_DICTIONARY = ("price", "volume", "bid", "ask", "instrument", "pair", "second", "meter")


def encoding(schema: pa.Schema) -> dict[str, Any]:
    """Return the options with which pyarrow writes the columns of this schema."""
    by_dictionary = []
    by_delta = {}
    for field in schema:
        if field.name in DELTA_ENCODED and field.type == pa.int64():
            by_delta[field.name] = "DELTA_BINARY_PACKED"
        elif pa.types.is_string(field.type) or field.name in NUMBERS_BY_DICTIONARY:
            by_dictionary.append(field.name)
    return {"compression": "zstd", "use_dictionary": by_dictionary, "column_encoding": by_delta}


class TableWriter:
    """A Parquet file that grows. As a context, it closes the file; after an error, it leaves out the rows that wait."""

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        """`sink` is a path, a file or an output stream of Arrow's."""
        self._file = pq.ParquetWriter(sink, schema, **encoding(schema))
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0
        self.rows = 0

    def add(self, rows: pa.Table) -> None:
        """Add rows, whose columns must be those of the schema."""
        if not rows.num_rows:
            return
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        self.rows += rows.num_rows
        if self._waiting_rows >= ROWS_A_GROUP or self._waiting_bytes >= BYTES_A_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._file.close()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self.close()
            return
        with suppress(OSError, pa.ArrowException):
            self._file.close()

    def _flush(self) -> None:
        if self._waiting:
            self._file.write_table(pa.concat_tables(self._waiting))
            self._waiting = []
            self._waiting_rows = 0
            self._waiting_bytes = 0
