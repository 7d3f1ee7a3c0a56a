"""Parses the lines of a spool to records, and writes a table a kind; a line that cannot be read has a problem."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark.sql.types import StringType, StructField, StructType

from exchange.json_records import SCHEMA
from spark.tables.files import persisted, spark_path, write_table
from spark.tables.schemas import ENVELOPE, KINDS, PAYLOADS, RUN_ID, TABLE_ORIGIN

CORRUPT = "_corrupt"
EXAMPLE_CHARACTERS = 160

NO_RECORD = "no record: not one JSON object with the fields of a spool record"
UNKNOWN_SCHEMA = f"unknown schema: not {SCHEMA}"
UNKNOWN_KIND = "unknown kind"
WRONG_PAYLOAD = "wrong payload: not that of its kind"
COPY = "copy: the same line stands in the spool before"


def ingest(spark: SparkSession, spool: Path, tables: Path) -> None:
    """Write one table for each kind, even a kind without rows; a second call replaces the tables.

    A line that cannot be read is in no table, and is not counted: the run's page refuses a spool with such a line.
    """
    lines = spark.read.text(spark_path(spool), pathGlobFilter="*.jsonl")
    with persisted(read_records(lines.withColumn("is_copy", is_copy(order="value")))) as records:
        for kind in KINDS:
            rows = rows_of_kind(records, kind).coalesce(1).sortWithinPartitions("wall_ns", "source")
            write_table(rows, tables / f"{kind}.parquet")


def is_copy(*keys: str, order: str) -> Column:
    """Return a column that is true if the same line, with the same `keys`, stands earlier in this order."""
    equal_lines = Window.partitionBy(*keys, fn.xxhash64("value")).orderBy(order)
    return fn.row_number().over(equal_lines) > 1


def read_records(lines: DataFrame) -> DataFrame:
    """Parse lines (value, other columns) to records: other columns, the envelope, a struct column a kind, `problem`.

    `problem` is null if the line is a record; `example` is the beginning of a line that has a problem. A line whose
    column `is_copy` is true has one.
    """
    # Spark would carry bytes that are no text into the tables, where other readers stumble over them.
    lines = lines.withColumn("value", fn.make_valid_utf8("value"))
    others = [name for name in lines.columns if name != "value"]
    parsed = lines.select("value", *others, _parsed("value", ENVELOPE).alias("envelope"))
    envelope_columns = []
    for field in ENVELOPE:
        name = RUN_ID if field.name == "run" else field.name
        envelope_columns.append(fn.col(f"envelope.{field.name}").alias(name))
    payloads = [fn.when(fn.col("kind") == kind, _parsed_payload(kind)).alias(kind) for kind in KINDS]
    is_copied = fn.col("is_copy") if "is_copy" in others else fn.lit(False)
    records = parsed.select("value", *others, *envelope_columns).select("*", *payloads)
    judged = records.withColumn("problem", _problem(is_copied))
    # A good line needs no example: its content is in the columns.
    example = fn.when(fn.col("problem").isNotNull(), fn.substring("value", 1, EXAMPLE_CHARACTERS))
    return judged.select(*others, *TABLE_ORIGIN, "kind", *KINDS, "problem", example.alias("example"))


def rows_of_kind(records: DataFrame, kind: str, keys: Iterable[str] = ()) -> DataFrame:
    """Return the rows of one kind: the columns `keys`, then those of the kind's table."""
    columns = [fn.col(f"{kind}.{name}") for name in PAYLOADS[kind].names]
    good = records.where(fn.col("problem").isNull() & (fn.col("kind") == kind))
    return good.select(*keys, *TABLE_ORIGIN, *columns)


def _parsed(column: str, schema: StructType) -> Column:
    """Parse JSON; a field that is missing, or not of its type, becomes null."""
    options = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false", "columnNameOfCorruptRecord": CORRUPT}
    return fn.from_json(column, schema, options)


def _parsed_payload(kind: str) -> Column:
    """Parse a payload; CORRUPT is not null if an optional field is not of its type."""
    return _parsed("payload", StructType([*PAYLOADS[kind].fields, StructField(CORRUPT, StringType())]))


def _lacks_any(prefix: str, schema: StructType) -> Column:
    return reduce(or_, (fn.col(prefix + field.name).isNull() for field in schema if not field.nullable))


def _problem(is_copied: Column) -> Column:
    """Return the first problem of a line, in the order of the tests below; null if it has none."""
    # from_json stops at the closing brace and would silently drop whatever follows it.
    one_object = fn.col("value").rlike(r"(?s)^\s*\{.*\}\s*$") & ~fn.col("value").contains("}{")
    return (
        fn.when(~one_object, NO_RECORD)
        .when(fn.col("schema") != SCHEMA, UNKNOWN_SCHEMA)
        .when(fn.col(RUN_ID).isNull() | _lacks_any("", ENVELOPE), NO_RECORD)
        .when(~fn.col("kind").isin(*KINDS), UNKNOWN_KIND)
        .when(reduce(or_, map(_wrong_payload, KINDS)) | _buckets_disagree(), WRONG_PAYLOAD)
        .when(is_copied, COPY)
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
