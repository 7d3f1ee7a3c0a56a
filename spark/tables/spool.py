"""The lines of a spool to records, and records to a table a kind; lines that cannot be read are counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark.sql.types import StringType, StructField, StructType

from spark.tables.files import spark_path, write_table
from spark.tables.schemas import ENVELOPE, KINDS, PAYLOADS, RUN_ID, SPOOL_SCHEMA, TABLE_ORIGIN

CORRUPT = "_corrupt"
EXAMPLE_CHARACTERS = 160

NO_RECORD = "no record: not one JSON object with the fields of a spool record"
UNKNOWN_SCHEMA = f"unknown schema: not {SPOOL_SCHEMA}"
UNKNOWN_KIND = "unknown kind"
WRONG_PAYLOAD = "wrong payload: not that of its kind"
COPY = "copy: the same line stands in the spool before"

WITHOUT_RUN = StructType([field for field in ENVELOPE if field.name != "run"])


@dataclass(frozen=True)
class Unread:
    """The number of lines that could not be read for one reason, and the beginning of one of them."""

    lines: int
    example: str


@dataclass(frozen=True)
class IngestReport:
    """Rows by kind, and by problem the lines of the spool that are in no table."""

    rows: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, Unread] = field(default_factory=dict)

    @property
    def malformed(self) -> int:
        """Number of lines that are in no table."""
        return sum(unread.lines for unread in self.unread.values())


def ingest(spark: SparkSession, spool: Path, tables: Path) -> IngestReport:
    """Write one table for each kind, even a kind without rows; a second call replaces the tables."""
    lines = spark.read.text(spark_path(spool), pathGlobFilter="*.jsonl")
    records = read_records(lines.withColumn("is_copy", is_copy(order="value"))).persist()
    try:
        report = _report(records)
        for kind in KINDS:
            rows = rows_of_kind(records, kind).coalesce(1).sortWithinPartitions("wall_ns", "source")
            write_table(rows, tables / f"{kind}.parquet")
    finally:
        records.unpersist()
    return report


def is_copy(*keys: str, order: str) -> Column:
    """True if an earlier line, in this order, is the same and has the same `keys`."""
    same = Window.partitionBy(*keys, fn.xxhash64("value")).orderBy(order)
    return fn.row_number().over(same) > 1


def read_records(lines: DataFrame) -> DataFrame:
    """Parse lines (value, other columns) to records: other columns, the envelope, a struct column a kind, `problem`.

    `problem` is null if the line is a record; `example` is the beginning of a line that has a problem. A line whose
    column `is_copy` is true has one.
    """
    others = [name for name in lines.columns if name != "value"]
    envelope = lines.select("value", *others, _parsed("value", ENVELOPE).alias("of"))
    names = [fn.col(f"of.{field.name}").alias(RUN_ID if field.name == "run" else field.name) for field in ENVELOPE]
    payloads = [fn.when(fn.col("kind") == kind, _parsed_payload(kind)).alias(kind) for kind in KINDS]
    copied = fn.col("is_copy") if "is_copy" in others else fn.lit(False)
    judged = envelope.select("value", *others, *names).select("*", *payloads).withColumn("problem", _problem(copied))
    # A good line is in the columns already.
    example = fn.when(fn.col("problem").isNotNull(), fn.substring("value", 1, EXAMPLE_CHARACTERS))
    return judged.select(*others, *TABLE_ORIGIN, "kind", *KINDS, "problem", example.alias("example"))


def rows_of_kind(records: DataFrame, kind: str, keys: Iterable[str] = ()) -> DataFrame:
    """Return the rows of one kind: the columns `keys`, then those of the kind's table."""
    columns = [fn.col(f"{kind}.{name}") for name in PAYLOADS[kind].names]
    good = records.where(fn.col("problem").isNull() & (fn.col("kind") == kind))
    return good.select(*keys, *TABLE_ORIGIN, *columns)


def count_problems(records: DataFrame, keys: Iterable[str] = ()) -> DataFrame:
    """Count good lines by kind, and bad lines, with an example, by problem: a handful of rows for each of `keys`."""
    kind = fn.when(fn.col("problem").isNull(), fn.col("kind")).alias("kind")
    counts = (fn.count("*").alias("lines"), fn.min("example").alias("example"))
    return records.groupBy(*keys, kind, "problem").agg(*counts)


def _report(records: DataFrame) -> IngestReport:
    rows, unread = dict.fromkeys(KINDS, 0), {}
    for kind, problem, lines, example in count_problems(records).collect():
        if problem is None:
            rows[kind] = lines
        else:
            unread[problem] = Unread(lines, example)
    return IngestReport(rows, unread)


def _parsed(column: str, schema: StructType) -> Column:
    """Parse JSON; a field that is missing, or not of its type, becomes null."""
    options = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false", "columnNameOfCorruptRecord": CORRUPT}
    return fn.from_json(column, schema, options)


def _parsed_payload(kind: str) -> Column:
    """Parse a payload; CORRUPT is not null if an optional field is not of its type."""
    return _parsed("payload", StructType([*PAYLOADS[kind].fields, StructField(CORRUPT, StringType())]))


def _lacks_any(prefix: str, schema: StructType) -> Column:
    return reduce(or_, (fn.col(prefix + field.name).isNull() for field in schema if not field.nullable))


def _problem(copied: Column) -> Column:
    """Return the first thing that is wrong with a line; null if nothing is."""
    # from_json stops at the closing brace and would silently drop whatever follows it.
    one_object = fn.col("value").rlike(r"(?s)^\s*\{.*\}\s*$") & ~fn.col("value").contains("}{")
    return (
        fn.when(~one_object, NO_RECORD)
        .when(fn.col("schema") != SPOOL_SCHEMA, UNKNOWN_SCHEMA)
        .when(fn.col(RUN_ID).isNull() | _lacks_any("", WITHOUT_RUN), NO_RECORD)
        .when(~fn.col("kind").isin(*KINDS), UNKNOWN_KIND)
        .when(reduce(or_, map(_wrong_payload, KINDS)) | _buckets_disagree(), WRONG_PAYLOAD)
        .when(copied, COPY)
    )


def _wrong_payload(kind: str) -> Column:
    wrong = fn.col(f"{kind}.{CORRUPT}").isNotNull() | _lacks_any(f"{kind}.", PAYLOADS[kind])
    return (fn.col("kind") == kind) & wrong


def _buckets_disagree() -> Column:
    """True if buckets and count disagree: percentiles come from the buckets, the mean comes from the count."""
    total = fn.aggregate("completion.bucket_count", fn.lit(0).cast("long"), lambda sum_, lines: sum_ + lines)
    buckets = fn.array_compact("completion.bucket")
    agree = (fn.size(buckets) == fn.size("completion.bucket_count")) & (total == fn.col("completion.count"))
    return (fn.col("kind") == "completion") & ~fn.coalesce(agree, fn.lit(False))
