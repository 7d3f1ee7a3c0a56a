"""The records of a batch: Spark parses its lines into records, and Arrow computes figures of their completion times.

Each line becomes one row. The row of a line that cannot be read has a `problem`. `identity` stands for all that a
record says: records with the same identity are one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from exchange.records import COMPLETION
from spark.tables.files import spark_path
from spark.tables.histograms import OF_SECOND, analysed, figures, figures_by_second, merged_histograms
from spark.tables.schemas import KINDS, PAYLOADS, TABLE_ORIGIN
from spark.tables.spool_by_spark import read_records

FILES_A_BATCH = 500
"""A run that is followed after its end has batches of this many files, so that memory holds some minutes of it."""
OPTIONS = {
    "pathGlobFilter": "*.jsonl",
    "maxFileAge": "36500d",  # a file is never too old to be read
}


def growing_lines(spark: SparkSession, spool: Path) -> DataFrame:
    """Return the spool as a stream of lines (value)."""
    path = spark_path(spool)
    # Given a path that looks like a pattern, Spark 4.3 reads each file of a batch as often as the batch has files.
    files_a_batch = 1 if "\\" in path else FILES_A_BATCH
    return spark.readStream.format("text").options(**OPTIONS, maxFilesPerTrigger=str(files_a_batch)).load(path)


def identified_records(lines: DataFrame) -> DataFrame:
    """Return a row a line: origin, kind, a struct a kind, `problem`, `example` (its file and beginning), `identity`."""
    records = read_records(lines)
    payloads = [
        fn.when(fn.col("kind") == kind, fn.struct(*(fn.col(f"{kind}.{name}") for name in PAYLOADS[kind].names))).alias(
            kind
        )
        for kind in KINDS
    ]
    file = fn.regexp_extract(fn.input_file_name(), "[^/]*$", 0)
    example = fn.when(fn.col("problem").isNotNull(), fn.concat(file, fn.lit(": "), "example")).alias("example")
    shown = records.select(*TABLE_ORIGIN, "kind", *payloads, "problem", example)
    return shown.withColumn("identity", fn.xxhash64(*TABLE_ORIGIN, "kind", *KINDS))


def completion_figures(seconds: Collection[int], records: Sequence[pa.Table]) -> dict[int, dict[str, Any]]:
    """Return the figures of completion time of each second, as spark.summary gives them.

    `records` must contain every record of these seconds.
    """
    second_array = pa.array(set(seconds), pa.int32())
    rows: dict[int, dict[str, Any]] = {second: {} for second in second_array.to_pylist()}
    if records:
        completions = pa.concat_tables([_completions(table, second_array) for table in records])
        histograms = merged_histograms(completions, OF_SECOND)
        rows |= figures_by_second([figures(histograms, OF_SECOND)])
    return rows


def _completions(records: pa.Table, seconds: pa.Array) -> pa.Table:
    """Return the completion times of these seconds; the last order's record is left out."""
    times = pa.Table.from_struct_array(records.filter(pc.equal(records["kind"], COMPLETION))[COMPLETION])
    return times.filter(pc.and_(analysed(times), pc.is_in(times["second"], seconds)))
