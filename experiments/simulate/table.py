"""instruments.parquet: a row an instrument, in the types that every reader of Parquet has."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from experiments.simulate.instrument import Row
from runs.errors import cannot_write
from runs.whole_file import whole_file

FILE = "instruments.parquet"
TEXTS = ("orders_xxh64", "answers_xxh64")
SMALL = ("bid", "ask")
"""Null where the book has none."""

SUMS = tuple(name for name in Row._fields if name not in {"instrument", "seed", *SMALL, *TEXTS})
"""What means something when it is added up over instruments."""

SCHEMA = pa.schema(
    [pa.field(name, pa.string() if name in TEXTS else pa.int32() if name in SMALL else pa.int64(), name in SMALL)
     for name in Row._fields]
)  # fmt: skip


def batch_of(rows: Iterable[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([row._asdict() for row in rows], SCHEMA)


def in_order(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """The whole table, by instrument, whoever made which part of it when."""
    return pa.Table.from_batches(batches, SCHEMA).sort_by("instrument").combine_chunks()


def write(folder: Path, table: pa.Table) -> None:
    try:
        with whole_file(folder / FILE) as file:
            pq.write_table(table, file, compression="zstd")
    except OSError as error:
        raise cannot_write(folder / FILE, error) from error
