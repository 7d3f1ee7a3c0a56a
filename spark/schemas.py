"""The columns of every table, one explicit schema a kind; docs/results.md says what they mean.

A field that may be null is marked so; a record that lacks any other is malformed.
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
"""The version of the spool's records that is understood here."""

INT, LONG, DOUBLE, TEXT, BOOLEAN = IntegerType(), LongType(), DoubleType(), StringType(), BooleanType()


def _required(**columns: DataType) -> list[Field]:
    return [Field(name, kind, nullable=False) for name, kind in columns.items()]


ENVELOPE = StructType(
    _required(schema=INT, run=TEXT, source=TEXT, kind=TEXT, wall_ns=LONG, monotonic_ns=LONG, payload=TEXT)
)

RUN_ID = "run_id"
ORIGIN = ["run", "source", "wall_ns", "monotonic_ns"]
"""What a record says of where it comes from: `run` is the run's id, which is RUN_ID in every table."""
TABLE_ORIGIN = [RUN_ID, *ORIGIN[1:]]
"""The columns with which every table begins."""

KEYS = ("experiment", "run")
"""By name, which run a row is of: the folder of its trial, and its own."""

PAYLOADS = {
    "session": StructType(_required(version=TEXT, policy=TEXT, packing=INT, max_price=INT)),
    "throughput": StructType(_required(meter=INT, rate_per_s=DOUBLE)),
    "sample": StructType(
        [
            *_required(id=LONG),
            Field("due_ns", LONG),  # null where the run had no schedule
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
            Field("reporters", INT),  # null in spools from before there could be several
        ]
    ),
}

KINDS = tuple(PAYLOADS)


def table_schema(kind: str) -> StructType:
    """The columns of tables/KIND.parquet: who said it and when, then the payload."""
    origin = [Field(RUN_ID, TEXT, nullable=False), *(ENVELOPE[name] for name in ORIGIN[1:])]
    return StructType([*origin, *PAYLOADS[kind].fields])
