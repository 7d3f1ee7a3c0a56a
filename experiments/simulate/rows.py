"""instruments.parquet: a row for each instrument, in types that every reader of Parquet has, and sums over the rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from exchange.results import NAME
from experiments.simulate.simulation import Row
from runs.errors import writing
from runs.files import whole_file

FILE = "instruments.parquet"
TEXTS = ("orders_xxh64", "answers_xxh64")
SMALL = ("bid", "ask")
"""Columns that are null if the book's side is empty."""

SUMS = tuple(name for name in Row._fields if name not in {"instrument", "seed", *SMALL, *TEXTS})
"""Columns whose sum over instruments means something."""
SPREAD = ("orders", "trades", "volume_traded")
"""Columns that the record gives as the least, the median and the most of an instrument."""

SCHEMA = pa.schema(
    [pa.field(name, pa.string() if name in TEXTS else pa.int32() if name in SMALL else pa.int64(), name in SMALL)
     for name in Row._fields]
)  # fmt: skip


def as_file(rows: Iterable[Row]) -> bytes:
    """Return the rows as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([row._asdict() for row in rows], SCHEMA), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def of_files(files: Iterable[bytes]) -> pa.Table:
    """The whole table, sorted by instrument, from files of `as_file`."""
    return in_order(pa.concat_tables(pq.read_table(pa.BufferReader(file), schema=SCHEMA) for file in files))


def in_order(rows: pa.Table) -> pa.Table:
    return rows.cast(SCHEMA).sort_by("instrument").combine_chunks()


def write(folder: Path, table: pa.Table) -> None:
    with writing(folder / FILE), whole_file(folder / FILE) as file:
        pq.write_table(table, file, compression="zstd")


def totals(rows: pa.Table) -> dict[str, int]:
    return {name: pc.sum(rows[name]).as_py() for name in SUMS}


def spread(rows: pa.Table) -> dict[str, dict[str, float]]:
    return {name: _spread(rows[name]) for name in SPREAD}


def _spread(column: pa.ChunkedArray) -> dict[str, float]:
    ends = pc.min_max(column).as_py()
    return {"min": ends["min"], "median": pc.quantile(column, 0.5)[0].as_py(), "max": ends["max"]}


def checksums(rows: pa.Table) -> dict[str, str]:
    """The sums of all instruments' checksums modulo 2^64, which do not depend on their order."""
    sums = {name: sum(int(text, 16) for text in rows[name].to_pylist()) % 2**64 for name in TEXTS}
    return {
        "hash": f"sum of {NAME}",
        **{name.removesuffix(f"_{NAME}"): f"{total:016x}" for name, total in sums.items()},
    }
