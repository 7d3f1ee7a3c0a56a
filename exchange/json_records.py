"""The one decoder of our JSON records; its errors name the wrong field. `exchange/record_kinds.py` has the kinds.

A record stays the dictionary that was written, since it is drawn and printed as JSON. Fields that its kind does not
name are left alone, since later versions add some.
"""

from __future__ import annotations

from typing import Any

import orjson

from exchange.words import printable

Record = dict[str, Any]
"""A decoded record of any kind, or an object inside of one."""

SCHEMA = 1
"""The schema of run.json, of the spool, and of every other record that is decoded here."""
DAMAGED = "damaged"
NEWER = "newer"


def cleaned(value: Any) -> Any:
    """Return the value with every text in it printable, so that text from elsewhere cannot control a terminal."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {cleaned(name): cleaned(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(inner) for inner in value]
    return value


def encode_json(value: Any, option: int | None = None) -> bytes:
    """Return the value as JSON, with the options of orjson. Bytes of a path that are no UTF-8 become escapes."""
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        return orjson.dumps(cleaned(value), option=option)


class UnusableRecord(ValueError):
    """A record that this version cannot use. The text follows the record's name: `is damaged: ...`."""

    def __init__(self, status: str, why: str) -> None:
        """`status` is DAMAGED or NEWER."""
        super().__init__(why)
        self.status = status


def decode(content: bytes, kind: type) -> Record:
    """Decode a JSON object and check its fields against `kind`, at any depth. UnusableRecord if one is wrong."""
    try:
        record = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise UnusableRecord(DAMAGED, f"is damaged: it is no JSON ({error})") from error
    if not isinstance(record, dict):
        raise UnusableRecord(DAMAGED, "is damaged: it holds no JSON object")
    schema = record.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        why = f"has schema {schema}, and this version of exchange reads {SCHEMA}: use a newer one"
        raise UnusableRecord(NEWER, why)
    check(record, kind)
    return record


def check(part: Record, kind: type) -> None:
    """Raise UnusableRecord, naming the field, if a record or a part of one does not match `kind`."""
    import msgspec  # 19 ms; components only write records

    try:
        msgspec.convert(part, kind)
    except msgspec.ValidationError as error:
        raise UnusableRecord(DAMAGED, f"is damaged: {error}") from error


def section(record: Record, name: str) -> Record:
    """Return a nested object of a record; empty if it is absent or null."""
    nested = record.get(name)
    return nested if isinstance(nested, dict) else {}
