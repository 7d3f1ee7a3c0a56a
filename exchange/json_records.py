"""Reads our JSON records back: one decoder, which names the field that is wrong.

A record's kind is a TypedDict of what readers rely on. Fields that it does not name are left alone, since later
versions add some. A record stays the dictionary that was written, since it is drawn and printed as JSON.
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

Record = dict[str, Any]

SCHEMA = 1
"""The schema of run.json, of the spool, and of every other record that is decoded here."""
DAMAGED, NEWER = "damaged", "newer"


class UnusableRecord(ValueError):
    """A record that this version cannot use; the text goes on after the record's name: `is damaged: ...`."""

    def __init__(self, status: str, why: str) -> None:
        """`status` is DAMAGED or NEWER."""
        super().__init__(why)
        self.status = status


def decode(content: bytes, kind: type) -> Record:
    """The JSON object, whose fields are those of `kind`, at any depth. UnusableRecord where they are not."""
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
    """UnusableRecord, which names the field, where a record, or a part of one, is no `kind`."""
    try:
        msgspec.convert(part, kind)
    except msgspec.ValidationError as error:
        raise UnusableRecord(DAMAGED, f"is damaged: {error}") from error
