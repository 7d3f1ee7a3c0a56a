"""The records of a batch: a plan makes them of lines, and pyarrow reads their files back without a Spark job.

Each line becomes one row. The row of a line that cannot be read has a `problem`. `identity` stands for all that a
record says: records with the same identity are one.
"""

from __future__ import annotations

from collections import defaultdict
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
from spark.summary import TIMES
from spark.tables.files import read_columns, spark_path
from spark.tables.histograms import EXACT, figures, merged_histograms
from spark.tables.schemas import KINDS, PAYLOADS, TABLE_ORIGIN
from spark.tables.spool import read_records

MOMENT_NS = 50_000_000
"""Records of two batches can be equal only if they were written in the same moment of this length."""
OPTIONS = {
    "pathGlobFilter": "*.jsonl",
    "maxFileAge": "36500d",  # a file is never too old to be read
}
HISTOGRAM = pa.schema(
    [*((name, pa.int64()) for name in EXACT), ("bucket", pa.list_(pa.int32())), ("bucket_count", pa.list_(pa.int64()))]
)


def growing_lines(spark: SparkSession, spool: Path) -> DataFrame:
    """Return the spool as a stream of lines (value)."""
    path = spark_path(spool)
    # Given a path that looks like a pattern, Spark 4.3 reads each file of a batch as often as the batch has files.
    one_by_one = {"maxFilesPerTrigger": "1"} if "\\" in path else {}
    lines = spark.readStream.format("text").options(**OPTIONS, **one_by_one).load(path)
    # Spark would carry bytes that are no text into the table, where other readers stumble over them.
    return lines.select(fn.make_valid_utf8("value").alias("value"))


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

    @property
    def has_duplicates(self) -> bool:
        return len(np.unique(self.identities)) < len(self.identities)

    def shares_any(self, other: Identities) -> bool:
        return bool(np.isin(self.identities, other.identities).any())


def read_identities(file: Path) -> Identities:
    table = read_columns(file, "wall_ns", "identity", "problem")
    good = table.filter(pc.is_null(table["problem"]))
    moments = np.unique(good["wall_ns"].to_numpy() // MOMENT_NS)
    return Identities(len(table), good["identity"].to_numpy(), frozenset(moments.tolist()))


def completion_figures(seconds: Iterable[int], files: Iterable[Path]) -> dict[int, dict[str, Any]]:
    """Return TIMES of these seconds, from all the files that hold records of them, as spark.summary gives them."""
    wanted, payloads = set(seconds), defaultdict[tuple[int, str], list[dict[str, Any]]](list)
    for file in files:
        table = read_columns(file, "kind", COMPLETION)
        completions = table.filter(pc.equal(table["kind"], COMPLETION))[COMPLETION]
        is_wanted = pc.is_in(pc.struct_field(completions, "second"), pa.array(wanted, pa.int32()))
        for payload in completions.filter(is_wanted).to_pylist():
            if payload["bucket"] and not payload["last_order"]:
                payloads[payload["second"], payload["clock"]].append(payload)
    rows: dict[int, dict[str, Any]] = {second: {} for second in wanted}
    for (second, clock), histograms in payloads.items():
        (merged,) = figures(merged_histograms(pa.Table.from_pylist(histograms, HISTOGRAM), ()), ()).to_pylist()
        named = {f"{clock}_{name}": value for name, value in merged.items()}
        rows[second] |= {name: value for name, value in named.items() if name in TIMES}
    return rows
