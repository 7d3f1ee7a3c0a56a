"""Lines to records as one plan, made once per query, and the rare step that drops what was said twice.

Each line becomes one row, also one that cannot be read, whose `problem` says why. `identity` stands for all
that a record says: equal records are one.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from spark.tables.files import spark_path
from spark.tables.schemas import KINDS, PAYLOADS, TABLE_ORIGIN
from spark.tables.spool import read_records

OPTIONS = {
    "pathGlobFilter": "*.jsonl",
    "maxFileAge": "36500d",  # a file is never too old to be read
}


def growing_lines(spark: SparkSession, spool: Path) -> DataFrame:
    """The spool as a stream of lines (value)."""
    path = spark_path(spool)
    # Of a path that looks like a pattern, Spark 4.3 reads each file of a batch as often as the batch has files.
    one_by_one = {"maxFilesPerTrigger": "1"} if "\\" in path else {}
    lines = spark.readStream.format("text").options(**OPTIONS, **one_by_one).load(path)
    # Spark would carry bytes that are no text into the table, where other readers stumble over them.
    return lines.select(fn.make_valid_utf8("value").alias("value"))


def judged(lines: DataFrame) -> DataFrame:
    """One row a line: origin, kind, a struct a kind; `problem`, and where it stands and how it begins; `identity`."""
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


def once(batch: DataFrame, earlier: DataFrame | None) -> DataFrame:
    """Without what is said twice, in the batch or before it; lines that cannot be read stay, each."""
    unread = batch.where("problem IS NOT NULL")
    good = batch.where("problem IS NULL").dropDuplicates(["identity"])
    if earlier is not None:
        before = earlier.where("problem IS NULL").select("identity")
        good = good.join(before, "identity", "left_anti").select(*batch.columns)
    return good.unionAll(unread)
