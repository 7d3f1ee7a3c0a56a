"""The columns of every table of records, one explicit schema a kind; docs/spool.md says what they mean.

A record is malformed if it lacks a field that is not marked as nullable.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)
from pyspark.sql.types import StructField as Field

SPOOL_SCHEMA = 1
"""The version of the spool's records that this code reads."""

INT, LONG, DOUBLE, TEXT, BOOLEAN = IntegerType(), LongType(), DoubleType(), StringType(), BooleanType()


def _required(**columns: DataType) -> list[Field]:
    return [Field(name, kind, nullable=False) for name, kind in columns.items()]


ENVELOPE = StructType(
    _required(schema=INT, run=TEXT, source=TEXT, kind=TEXT, wall_ns=LONG, monotonic_ns=LONG, payload=TEXT)
)

ORIGIN = ("source", "wall_ns", "monotonic_ns")
"""The fields that say who wrote a record, and when."""
RUN_ID = "run_id"
"""The tables' name for a record's field `run`, the run's id."""
TABLE_ORIGIN = (RUN_ID, *ORIGIN)
"""The first columns of every table."""

KEYS = ("experiment", "run")
"""The names of a row's run: the folder of its trial, and its own."""

PAYLOADS = {
    "session": StructType(_required(version=TEXT, policy=TEXT, packing=INT, max_price=INT)),
    "throughput": StructType(_required(meter=INT, rate_per_s=DOUBLE)),
    "sample": StructType(
        [
            *_required(id=LONG),
            Field("due_ns", LONG),  # null if the run had no schedule
            *_required(handed_over_ns=LONG, answered_ns=LONG),
        ]
    ),
    "completion": StructType(
        _required(
            second=INT,
            clock=TEXT,
            last_order=BOOLEAN,
            count=LONG,
            sum_ns=LONG,
            min_ns=LONG,
            max_ns=LONG,
            bucket=ArrayType(INT, containsNull=False),
            bucket_count=ArrayType(LONG, containsNull=False),
        )
    ),
    "traffic": StructType(_required(second=INT, orders_sent=LONG, orders_answered=LONG, messages_received=LONG)),
    "process": StructType(
        _required(
            second=INT,
            cpu_s=DOUBLE,
            max_rss_bytes=LONG,
            voluntary_context_switches=LONG,
            involuntary_context_switches=LONG,
        )
    ),
    "end": StructType(
        [
            *_required(announced=LONG, received=LONG),
            Field("reporters", INT),  # null in spools of versions with one reporter
        ]
    ),
}

KINDS = tuple(PAYLOADS)


def table_schema(kind: str) -> StructType:
    """Return the columns of tables/KIND.parquet: a record's origin, then its payload."""
    origin = [Field(RUN_ID, TEXT, nullable=False), *(ENVELOPE[name] for name in ORIGIN)]
    return StructType([*origin, *PAYLOADS[kind].fields])
