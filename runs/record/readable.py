"""JSON of ours read back: what is damaged, or of a newer version, is said in a sentence."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import orjson

from runs.errors import UserError


def read_record(path: Path, schema: int, needed: Collection[str]) -> dict[str, Any]:
    """A file's content: an object of this schema or an older one, with what is needed of it."""
    return readable(path.read_bytes(), str(path), schema, needed)


def readable(content: bytes, where: str, schema: int, needed: Collection[str]) -> dict[str, Any]:
    """The same of bytes; `where` names them in the sentence."""
    try:
        record = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise damaged(where, str(error)) from error
    if not isinstance(record, dict):
        raise damaged(where, "it holds no JSON object")
    found = record.get("schema", schema)
    if not isinstance(found, int) or found > schema:
        raise UserError(f"{where} is of schema {found!r}; this exchange reads up to {schema}: use a newer exchange")
    if missing := [name for name in needed if name not in record]:
        raise damaged(where, f"it lacks {', '.join(missing)}")
    return record


def damaged(where: str, why: str) -> UserError:
    return UserError(f"{where} is damaged: {why}; restore it, or move it away and make the report of what is left")
