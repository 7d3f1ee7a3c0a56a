"""Parquet files as they are, for tasks that decode them with Arrow.

Spark reads them, from wherever it can, and deals them out; it does not look into them. Its own way from a file to
Arrow is value by value: 100,000,000 numbers took it 31 s, of which this way takes 5, counted and all.

    files on any file system ──Spark──▶ (path, content) ──in Arrow──▶ `tables_of`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from spark.errors import DatasetUnreadableError

PATH, CONTENT = "path", "content"
ROWS_AT_ONCE = 1 << 16
"""Of a table at once: what is counted of it stays in a processor's cache."""


def whole_files(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """(path, content: binary), a row for each file; AnalysisException where one is not there.

    A file has to fit into the JVM's memory, 1 GB by default, several times over: those of a run are of a few MB.

    `paths` are as Spark's readers take them (spark.tables.escaped), of files, or of folders that hold them.
    """
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", True)
    return reader.option("pathGlobFilter", "*.parquet").load(list(paths)).select(PATH, CONTENT)


def tables_of(
    files: Iterator[pa.RecordBatch], columns: Sequence[str], rows: int = ROWS_AT_ONCE
) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """(what is said of a file beside path and content, up to so many rows of it), of all rows of all files.

    DatasetUnreadableError where one is damaged.
    """
    for batch in files:
        said = batch.drop_columns([PATH, CONTENT]).to_pylist()
        for of_file, path, content in zip(said, batch[PATH], batch[CONTENT], strict=True):
            try:
                with pq.ParquetFile(pa.BufferReader(content.as_buffer())) as file:
                    for part in file.iter_batches(rows, columns=list(columns), use_threads=False):
                        yield of_file, pa.Table.from_batches([part])
            except (pa.ArrowException, OSError) as error:
                raise DatasetUnreadableError(
                    f"{path} is damaged ({_in_a_line(error)}): make it anew from its run's spool"
                ) from error


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())
