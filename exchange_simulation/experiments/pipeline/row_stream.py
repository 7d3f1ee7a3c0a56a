"""All rows of a query as Arrow batches, in bounded memory on both sides.

    executors on this machine ──Parquet files in a scratch folder──▶ batches, in the order of the rows
    executors elsewhere       ──a partition after the other─────────▶ batches

`DataFrame.toArrow()` would hold all rows in the driver's JVM and once more in Python. A JVM of 1 GB never came to an
end with 5,000,000 rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import NullType, Row, TimestampType

from spark.sessions.master import is_this_machine
from spark.tables.files import spark_path

ROWS_AT_ONCE = 1 << 14
"""A batch of completion records, the longest rows, has 80 MB then."""
SCRATCH_PREFIX = "rows-"
UTC = "UTC"


@dataclass(frozen=True)
class RowStream:
    """The rows of a query, which can be read once."""

    schema: pa.Schema
    batches: Iterable[pa.RecordBatch]


@contextmanager
def row_stream(rows: DataFrame, master: str) -> Iterator[RowStream]:
    """Open the stream of all rows. Inside, the files that hold them on this machine stay."""
    if not is_this_machine(master):
        yield _from_elsewhere(rows)
        return
    session_folder = rows.sparkSession.conf.get("spark.local.dir")
    with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, dir=session_folder) as folder:
        yield _from_here(rows, Path(folder))


def _from_here(rows: DataFrame, folder: Path) -> RowStream:
    """Have the executors write the rows into `folder`; return a stream that reads them back."""
    writable = _numbered(rows)  # Parquet refuses equal names
    for field in writable.schema:
        if isinstance(field.dataType, NullType):
            writable = writable.withColumn(field.name, fn.col(field.name).cast("string"))
    writable.write.mode("overwrite").parquet(spark_path(folder))
    files = sorted(folder.glob("part-*.parquet"))
    schema = pa.schema(
        [field.with_name(name) for field, name in zip(pq.read_schema(files[0]), rows.columns, strict=True)]
    )
    return RowStream(schema, _read(files, schema))


def _numbered(rows: DataFrame) -> DataFrame:
    """Return the rows with column_0, column_1, ... as the names of their columns."""
    return rows.toDF(*(f"column_{place}" for place in range(len(rows.columns))))


def _read(files: Iterable[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for path in files:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE):
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _from_elsewhere(rows: DataFrame) -> RowStream:
    schema = to_arrow_schema(rows.schema, timezone=UTC)
    plain = _numbered(rows)
    for field in plain.schema:
        if isinstance(field.dataType, TimestampType):  # as a datetime it would be a local time without its zone
            plain = plain.withColumn(field.name, fn.unix_micros(field.name))
    return RowStream(schema, _batches(plain.toLocalIterator(prefetchPartitions=True), schema))


def _batches(rows: Iterable[Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    remaining = iter(rows)
    while chunk := list(islice(remaining, ROWS_AT_ONCE)):
        columns = zip(*chunk, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
