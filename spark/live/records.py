"""The records of a batch: a plan makes them of lines, and pyarrow reads their files back without a Spark job.

Each line becomes one row. The row of a line that cannot be read has a `problem`. `identity` stands for all that a
record says: records with the same identity are one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from exchange.records import COMPLETION
from spark.tables.files import read_columns, spark_path
from spark.tables.histograms import OF_SECOND, figures, figures_by_second, merged_histograms
from spark.tables.schemas import KINDS, PAYLOADS, TABLE_ORIGIN
from spark.tables.spool import read_records

MOMENT_NS = 50_000_000
"""Records of two batches can be equal only if they were written in the same moment of this length."""
OPTIONS = {
    "pathGlobFilter": "*.jsonl",
    "maxFileAge": "36500d",  # a file is never too old to be read
}


def growing_lines(spark: SparkSession, spool: Path) -> DataFrame:
    """Return the spool as a stream of lines (value)."""
    path = spark_path(spool)
    # Given a path that looks like a pattern, Spark 4.3 reads each file of a batch as often as the batch has files.
    one_by_one = {"maxFilesPerTrigger": "1"} if "\\" in path else {}
    return spark.readStream.format("text").options(**OPTIONS, **one_by_one).load(path)


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


def without_duplicates(batch: DataFrame, earlier: DataFrame | None) -> DataFrame:
    """Drop records that stand twice in the batch, or in `earlier` ones; all lines that cannot be read stay."""
    unread = batch.where("problem IS NOT NULL")
    good = batch.where("problem IS NULL").dropDuplicates(["identity"])
    if earlier is not None:
        before = earlier.where("problem IS NULL").select("identity")
        good = good.join(before, "identity", "left_anti").select(*batch.columns)
    return good.unionAll(unread)


@dataclass(frozen=True)
class Identities:
    """The number of a batch's lines, and of its good lines the identities and the moments of writing."""

    lines: int
    identities: npt.NDArray[np.int64]
    moments: frozenset[int]


def read_identities(file: Path) -> Identities:
    table = read_columns(file, "wall_ns", "identity", "problem")
    good = table.filter(pc.is_null(table["problem"]))
    moments = np.unique(good["wall_ns"].to_numpy() // MOMENT_NS)
    return Identities(len(table), good["identity"].to_numpy(), frozenset(moments.tolist()))


def completion_figures(seconds: Iterable[int], files: Iterable[Path]) -> dict[int, dict[str, Any]]:
    """Return TIMES of these seconds, from all the files that hold records of them, as spark.summary gives them."""
    wanted = pa.array(set(seconds), pa.int32())
    rows: dict[int, dict[str, Any]] = {second: {} for second in wanted.to_pylist()}
    if records := [_completions(file, wanted) for file in files]:
        histograms = merged_histograms(pa.concat_tables(records), OF_SECOND)
        rows |= figures_by_second([figures(histograms, OF_SECOND)])
    return rows


def _completions(file: Path, seconds: pa.Array) -> pa.Table:
    """Return the file's completion times of these seconds; the last order's record is left out."""
    table = read_columns(file, "kind", COMPLETION)
    times = pa.Table.from_struct_array(table.filter(pc.equal(table["kind"], COMPLETION))[COMPLETION])
    analysed = pc.and_(pc.invert(times["last_order"]), pc.greater(times["count"], 0))
    return times.filter(pc.and_(analysed, pc.is_in(times["second"], seconds)))
