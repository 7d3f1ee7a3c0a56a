"""Parses the lines of a spool in Spark, from files or from a stream; a line that cannot be read has a problem.

`spool_by_arrow.py` makes the tables of a finished run without Spark; a test holds both equal. Only there a line that
stands twice counts once: Spark cannot know all lines that came before.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from exchange.json_records import SCHEMA
from exchange.measurements import BUCKETS
from exchange.records import COMPLETION
from spark.tables.problems import EXAMPLE_CHARACTERS, NO_RECORD, UNKNOWN_KIND, UNKNOWN_SCHEMA, WRONG_PAYLOAD
from spark.tables.schemas import AT, ENVELOPE, KINDS, PAIR, PAIRED_SOURCE, PAYLOADS, RUN_ID, TABLE_ORIGIN

CORRUPT = "_corrupt"
ENVELOPE_TYPE = from_arrow_schema(ENVELOPE)
PAYLOAD_TYPES = {kind: from_arrow_schema(payload) for kind, payload in PAYLOADS.items()}
"""The columns of a kind's payload, as Spark has them."""
PAIR_OF_SOURCE = (
    f"if(source rlike '{PAIRED_SOURCE}', coalesce(try_cast(split_part(source, '.', 2) as int), 1), cast(null as int))"
)
AT_OF_WALL_NS = "timestamp_micros(wall_ns div 1000)"


def read_records(lines: DataFrame) -> DataFrame:
    """Parse lines (value) to records: the envelope, a struct column a kind, `problem`, `example`.

    `problem` is null if the line is a record; `example` is the beginning of a line that has a problem.
    """
    # Spark would carry bytes that are no text into the tables, where other readers stumble over them.
    lines = lines.withColumn("value", fn.make_valid_utf8("value"))
    parsed = lines.select("value", _parsed("value", ENVELOPE_TYPE).alias("envelope"))
    envelope_columns = []
    for field in ENVELOPE_TYPE:
        name = RUN_ID if field.name == "run" else field.name
        envelope_columns.append(fn.col(f"envelope.{field.name}").alias(name))
    payloads = [fn.when(fn.col("kind") == kind, _parsed_payload(kind)).alias(kind) for kind in KINDS]
    derived = {PAIR: fn.expr(PAIR_OF_SOURCE), AT: fn.expr(AT_OF_WALL_NS)}
    records = parsed.select("value", *envelope_columns).withColumns(derived).select("*", *payloads)
    judged = records.withColumn("problem", _problem())
    # A good line needs no example: its content is in the columns.
    example = fn.when(fn.col("problem").isNotNull(), fn.substring("value", 1, EXAMPLE_CHARACTERS))
    return judged.select(*TABLE_ORIGIN, "kind", *KINDS, "problem", example.alias("example"))


def rows_of_kind(records: DataFrame, kind: str) -> DataFrame:
    """Return the rows of one kind, with the columns of the kind's table."""
    columns = [fn.col(f"{kind}.{name}") for name in PAYLOADS[kind].names]
    good = records.where(fn.col("problem").isNull() & (fn.col("kind") == kind))
    return good.select(*TABLE_ORIGIN, *columns)


def _parsed(column: str, schema: StructType) -> Column:
    """Parse JSON; a field that is missing, or not of its type, becomes null."""
    options = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false", "columnNameOfCorruptRecord": CORRUPT}
    return fn.from_json(column, schema, options)


def _parsed_payload(kind: str) -> Column:
    """Parse a payload; CORRUPT is not null if an optional field is not of its type."""
    return _parsed("payload", StructType([*PAYLOAD_TYPES[kind].fields, StructField(CORRUPT, StringType())]))


def _lacks_any(prefix: str, schema: StructType) -> Column:
    return reduce(or_, (fn.col(prefix + field.name).isNull() for field in schema if not field.nullable))


def _problem() -> Column:
    """Return the first problem of a line, in the order of the tests below; null if it has none."""
    # from_json stops at the closing brace and would silently drop whatever follows it.
    one_object = fn.col("value").rlike(r"(?s)^\s*\{.*\}\s*$") & ~fn.col("value").contains("}{")
    return (
        fn.when(~one_object, NO_RECORD)
        .when(fn.col("schema") != SCHEMA, UNKNOWN_SCHEMA)
        .when(fn.col(RUN_ID).isNull() | _lacks_any("", ENVELOPE_TYPE), NO_RECORD)
        .when(~fn.col("kind").isin(*KINDS), UNKNOWN_KIND)
        .when(reduce(or_, map(_wrong_payload, KINDS)) | _has_damaged_buckets(), WRONG_PAYLOAD)
    )


def _wrong_payload(kind: str) -> Column:
    wrong = fn.col(f"{kind}.{CORRUPT}").isNotNull() | _lacks_any(f"{kind}.", PAYLOAD_TYPES[kind])
    return (fn.col("kind") == kind) & wrong


def _has_damaged_buckets() -> Column:
    """True for a completion whose buckets `exchange.records.damage_of_buckets` refuses."""
    buckets = fn.array_compact("completion.bucket")
    counts = fn.col("completion.bucket_count")
    total = fn.aggregate(counts, fn.lit(0).cast("long"), lambda sum_, lines: sum_ + lines)
    is_usable = (
        (fn.size(buckets) == fn.size(counts))
        & fn.forall(buckets, lambda bucket: bucket.between(0, BUCKETS - 1))
        & fn.forall(counts, lambda lines: lines >= 0)
        & (total == fn.col("completion.count"))
    )
    for name in ("count", "sum_ns", "min_ns", "max_ns"):
        is_usable &= fn.col(f"completion.{name}") >= 0
    return (fn.col("kind") == COMPLETION) & ~fn.coalesce(is_usable, fn.lit(False))
