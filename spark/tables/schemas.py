"""The columns of every table of records, derived from the kinds of records in exchange/records.py.

A record is malformed if it lacks a field that is not marked as nullable.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints

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

from exchange import records

INT = IntegerType()
LONG = LongType()
DOUBLE = DoubleType()
TEXT = StringType()
BOOLEAN = BooleanType()

TYPES: dict[Any, DataType] = {
    int: LONG,
    records.Int32: INT,
    float: DOUBLE,
    str: TEXT,
    bool: BOOLEAN,
    list[int]: ArrayType(LONG, containsNull=False),
    list[records.Int32]: ArrayType(INT, containsNull=False),
    dict[str, Any]: TEXT,  # JSON, which is parsed once its kind is known
}
"""Spark's type for each type of a record's field."""


def schema_of(record: type) -> StructType:
    """Return the columns of a TypedDict. TypeError, naming the field, if Spark has no type for it here."""
    hints = get_type_hints(record, include_extras=True)
    return StructType([_field(record, name, hint) for name, hint in hints.items()])


def _field(record: type, name: str, hint: Any) -> Field:
    """Return a column; it is nullable if its field may be absent or null."""
    nullable = False
    if get_origin(hint) is NotRequired:
        nullable = True
        (hint,) = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        nullable = nullable or NoneType in get_args(hint)
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if hint not in TYPES:
        raise TypeError(f"{record.__name__}.{name} is of type {hint}, which has no type in spark/tables/schemas.py")
    return Field(name, TYPES[hint], nullable)


ENVELOPE = schema_of(records.SpoolRecord)
PAYLOADS = {kind: schema_of(payload) for kind, payload in records.PAYLOADS.items()}
KINDS = tuple(PAYLOADS)

ORIGIN = ("source", "wall_ns", "monotonic_ns")
"""The fields that say who wrote a record, and when."""
RUN_ID = "run_id"
"""The tables' name for a record's field `run`, the run's id."""
TABLE_ORIGIN = (RUN_ID, *ORIGIN)
"""The first columns of every table."""

KEYS = ("experiment", "run")
"""The names of a row's run: the folder of its trial, and its own."""


def table_schema(kind: str) -> StructType:
    """Return the columns of tables/KIND.parquet: a record's origin, then its payload."""
    origin = [Field(RUN_ID, TEXT, nullable=False), *(ENVELOPE[name] for name in ORIGIN)]
    return StructType([*origin, *PAYLOADS[kind].fields])
