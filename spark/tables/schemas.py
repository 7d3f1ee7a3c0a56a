"""The columns of every table of records, derived from the kinds of records in exchange/records.py; names of files.

A record is malformed if it lacks a field that is not marked as nullable. The schemas are Arrow's, since Arrow writes
the tables; `from_arrow_schema` of pyspark makes Spark's of them.
"""

from __future__ import annotations

import re
from types import NoneType, UnionType
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints
from urllib.parse import unquote

import pyarrow as pa

from exchange import records

TIMESTAMP = pa.timestamp("us", tz="UTC")
WORDS = pa.map_(pa.string(), pa.string())
"""Words by name, such as settings."""


def _list_of(values: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", values, nullable=False))


TYPES: dict[Any, pa.DataType] = {
    int: pa.int64(),
    records.Int32: pa.int32(),
    float: pa.float64(),
    str: pa.string(),
    bool: pa.bool_(),
    list[int]: _list_of(pa.int64()),
    list[records.Int32]: _list_of(pa.int32()),
    dict[str, Any]: pa.string(),  # the payload of a line, as JSON: its columns follow from the kind
}
"""Arrow's type for each type of a record's field."""


def schema_of(record: type) -> pa.Schema:
    """Return the columns of a TypedDict. TypeError, naming the field, if a field's type is not in TYPES."""
    hints = get_type_hints(record, include_extras=True)
    return pa.schema([_field(record, name, hint) for name, hint in hints.items()])


def _field(record: type, name: str, hint: Any) -> pa.Field:
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
    return pa.field(name, TYPES[hint], nullable)


ENVELOPE = schema_of(records.SpoolRecord)
PAYLOADS = {kind: schema_of(payload) for kind, payload in records.PAYLOADS.items()}
KINDS = tuple(PAYLOADS)
EVENTS = ("orders", "trades", "confirmations", "quotes")
"""The names of the tables of market events, whose columns are declared where they are made."""

ORIGIN = ("source", "wall_ns", "monotonic_ns")
"""The fields that say who wrote a record, and when."""
RUN_ID = "run_id"
"""The tables' name for a record's field `run`, the run's id."""
PAIR = "pair"
"""The number of the gateway or engine that wrote a record, else null. A sample's is the `gateway` of its order."""
AT = "at"
"""`wall_ns` as a timestamp in microseconds: not every reader has a type for nanoseconds."""
TABLE_ORIGIN = (RUN_ID, "source", PAIR, AT, "wall_ns", "monotonic_ns")
"""The first columns of every table of records."""
PAIRED_SOURCE = r"^(gateway|engine)([.]([0-9]{1,4}))?$"
"""Matches a record's source whose number is that of a pair. The number is the third group; without it, it is 1."""

KEYS = ("experiment", "run")
"""The columns that identify a run: `experiment` is the folder of its trial, and `run` is its own folder in there."""


def table_schema(kind: str) -> pa.Schema:
    """Return the columns of tables/KIND.parquet: a record's origin, then its payload."""
    added_fields = {
        RUN_ID: pa.field(RUN_ID, pa.string(), nullable=False),
        PAIR: pa.field(PAIR, pa.int32()),
        AT: pa.field(AT, TIMESTAMP, nullable=False),
    }
    origin = [added_fields[name] if name in added_fields else ENVELOPE.field(name) for name in TABLE_ORIGIN]
    return pa.schema([*origin, *PAYLOADS[kind]])


RESERVED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
"""The characters that Hive and Spark escape in the value of a folder such as experiment=E."""
PART_FILE = re.compile(r"[^/]+/experiment=(?P<experiment>[^/]*)/part-(?P<part>[0-9]+)\.parquet")


def experiment_folder(experiment: str) -> str:
    """Return experiment=E, with reserved characters escaped: the column `experiment` stands in the path."""
    name = RESERVED.sub(lambda match: f"%{ord(match[0]):02X}", experiment)
    return f"experiment={name}"


def part_file(table: str, experiment: str, part: int) -> str:
    """Return the file of a part of an experiment in a table of many runs."""
    return f"{table}/{experiment_folder(experiment)}/part-{part}.parquet"


def experiment_and_part(file: str) -> tuple[str, int] | None:
    """Return the experiment and the number in a name that `part_file` made; None for another name."""
    match = PART_FILE.fullmatch(file)
    return None if match is None else (unquote(match["experiment"]), int(match["part"]))
