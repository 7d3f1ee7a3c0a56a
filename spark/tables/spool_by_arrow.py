"""The tables of one run's spool, made by Arrow in this process: a table for each kind, and the lines that are in none.

    spool files ── a line at a time ──▶ records of each kind ── ROWS_AT_ONCE ──▶ Arrow tables, sorted by time

`spool_by_spark.py` reads the same lines in Spark, for streams; a test holds both equal, but for copies of lines, which
only this file leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from exchange.json_records import SCHEMA
from exchange.records import COMPLETION, damage_of_buckets
from exchange.seconds import Once
from spark.tables.problems import COPY, EXAMPLE_CHARACTERS, NO_RECORD, UNKNOWN_KIND, UNKNOWN_SCHEMA, WRONG_PAYLOAD
from spark.tables.schemas import KINDS, PAIRED_SOURCE, PAYLOADS, table_schema

ROWS_AT_ONCE = 1_000
"""Records become Arrow columns after this many, since their lists take several times the memory in Python."""
QUARANTINE = pa.schema({"problem": pa.string(), "file": pa.string(), "example": pa.string()})
"""The columns of the table of lines that are in no other table."""
NS_PER_US = 1_000
BITS_WITHOUT_SIGN = {pa.int32(): 31, pa.int64(): 63}
"""By Arrow type of whole numbers."""
NO_PAYLOAD = b"null"


class SpoolLine(msgspec.Struct):
    """A line of the spool whose fields are not checked yet; one that is missing is None."""

    schema: Any = None
    run: Any = None
    source: Any = None
    kind: Any = None
    wall_ns: Any = None
    monotonic_ns: Any = None
    payload: msgspec.Raw = msgspec.Raw(NO_PAYLOAD)


@dataclass(frozen=True)
class SpoolTables:
    """The tables of a spool."""

    kinds: dict[str, pa.Table]
    """By kind. A kind without records has an empty table."""
    quarantine: pa.Table

    @property
    def records(self) -> int:
        return sum(table.num_rows for table in self.kinds.values())


class _UnusableLine(Exception):
    """The line has the problem that is the exception's text."""


def tables_of_spool(spool: Path) -> SpoolTables:
    """Read a run's spool. OSError if a file cannot be read."""
    rows_by_kind = {kind: _Rows(kind) for kind in KINDS}
    quarantine: list[dict[str, str]] = []
    once = Once()
    for file, line in _lines(spool):
        text = line.decode(errors="replace")
        try:
            record, payload = _record(text)
            if not once.is_new(line):
                raise _UnusableLine(COPY)
            rows_by_kind[record.kind].add(record, payload)
        except _UnusableLine as problem:
            quarantine.append({"problem": str(problem), "file": file, "example": text[:EXAMPLE_CHARACTERS]})
    return SpoolTables(
        kinds={kind: rows.table() for kind, rows in rows_by_kind.items()},
        quarantine=pa.Table.from_pylist(quarantine, QUARANTINE),
    )


def _lines(spool: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each line with the name of its file. Files that are not whole yet have hidden names."""
    for path in sorted(spool.glob("[!.]*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                for piece in line.splitlines():  # a damaged line may hold further ends of lines
                    yield path.name, piece


def _record(text: str) -> tuple[SpoolLine, Any]:
    """Return a record and its payload. _UnusableLine if the line has a problem: the first one that the tests find."""
    try:
        line = SPOOL_LINE_DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise _UnusableLine(NO_RECORD) from None
    if not _is_whole(line.schema, 31):
        raise _UnusableLine(NO_RECORD)
    if line.schema != SCHEMA:  # before the other fields, which another schema may not have
        raise _UnusableLine(UNKNOWN_SCHEMA)
    has_words = all(isinstance(word, str) for word in (line.run, line.source, line.kind))
    has_times = _is_whole(line.wall_ns, 63) and _is_whole(line.monotonic_ns, 63)
    if not has_words or not has_times or bytes(line.payload) == NO_PAYLOAD:
        raise _UnusableLine(NO_RECORD)
    if line.kind not in PAYLOADS:
        raise _UnusableLine(UNKNOWN_KIND)
    try:
        payload = PAYLOAD_DECODERS[line.kind].decode(line.payload)
    except (msgspec.DecodeError, RecursionError):
        raise _UnusableLine(WRONG_PAYLOAD) from None
    if line.kind == COMPLETION and damage_of_buckets(msgspec.structs.asdict(payload)) is not None:
        raise _UnusableLine(WRONG_PAYLOAD)
    return line, payload


def _is_whole(value: Any, bits: int) -> bool:
    """Return whether the value is a whole number of this many bits, without its sign."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**bits) <= value < 2**bits


class _Rows:
    """Collects the rows of one kind."""

    def __init__(self, kind: str) -> None:
        self._schema = table_schema(kind)
        self._names = PAYLOADS[kind].names
        self._rows: list[tuple[Any, ...]] = []
        self._batches: list[pa.RecordBatch] = []

    def add(self, line: SpoolLine, payload: Any) -> None:
        at_us = line.wall_ns // NS_PER_US
        # In the order of TABLE_ORIGIN; the payload's fields follow, as in table_schema.
        origin = (line.run, line.source, _pair_of(line.source), at_us, line.wall_ns, line.monotonic_ns)
        self._rows.append((*origin, *(getattr(payload, name) for name in self._names)))
        if len(self._rows) == ROWS_AT_ONCE:
            self._make_batch()

    def table(self) -> pa.Table:
        """Return all rows, sorted by time."""
        self._make_batch()
        table = pa.Table.from_batches(self._batches, self._schema)
        return table.sort_by([("wall_ns", "ascending"), ("source", "ascending")]).combine_chunks()

    def _make_batch(self) -> None:
        if not self._rows:
            return
        arrays = []
        columns = zip(*self._rows, strict=True)
        for values, field in zip(columns, self._schema, strict=True):
            if pa.types.is_string(field.type):
                arrays.append(pa.array([_text(value) for value in values], field.type))
            else:
                arrays.append(pa.array(values, field.type))
        self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows = []


def _text(value: Any) -> str | None:
    """Return the value as a string: a number or a truth value as its JSON, as Spark does.

    Older hellos have a number as their version.
    """
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _pair_of(source: str) -> int | None:
    """Return the number of the pair to which a gateway or an engine belongs; None for other sources."""
    match = re.match(PAIRED_SOURCE, source)
    return int(match[3] or 1) if match else None


def _payload_decoder(kind: str) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a kind's payloads, which refuses a missing field and a value out of its column's range."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for field in PAYLOADS[kind]:
        if field.nullable:
            fields.append((field.name, _python_type(field.type) | None, None))
        else:
            fields.append((field.name, _python_type(field.type)))
    return msgspec.json.Decoder(msgspec.defstruct(kind, fields, kw_only=True))


def _python_type(arrow_type: pa.DataType) -> Any:
    """Return the type, with its range, that msgspec checks for a column."""
    if pa.types.is_list(arrow_type):
        return list[_python_type(arrow_type.value_type)]  # type: ignore[misc]
    if arrow_type in BITS_WITHOUT_SIGN:
        most = 2 ** BITS_WITHOUT_SIGN[arrow_type]
        return Annotated[int, msgspec.Meta(ge=-most, le=most - 1)]
    if pa.types.is_string(arrow_type):
        return str | int | float | bool
    by_name = {pa.float64(): float, pa.bool_(): bool}
    return by_name[arrow_type]


SPOOL_LINE_DECODER = msgspec.json.Decoder(SpoolLine)
PAYLOAD_DECODERS = {kind: _payload_decoder(kind) for kind in KINDS}
