"""Records as they are found in a folder, or why one cannot be used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any

import click
import orjson

Record = dict[str, Any]
Shape = Mapping[str, type | UnionType]
"""What a record must hold, by name; a type or None, what it may."""

UNFINISHED, DAMAGED, NEWER = "unfinished", "damaged", "newer"


class Unread(click.ClickException):
    """`status` stands where a record's own would: unfinished, damaged or newer."""

    def __init__(self, path: Path, status: str, why: str) -> None:
        super().__init__(f"{path} {why}")
        self.status, self.told = status, f"{path.name} {why}"


def read_record(path: Path, schema: int, shape: Shape) -> Record:
    """Unread where it is none of ours, or of a version whose meaning is not known here."""
    found = _json(path)
    if not isinstance(found, dict):
        raise Unread(path, DAMAGED, "is JSON of another shape than a record's")
    version = found.get("schema")
    if isinstance(version, int) and version > schema:
        raise Unread(path, NEWER, f"has schema {version}, and this version of exchange knows {schema}: use a newer one")
    wrong = [name for name, kind in {"schema": int, **shape}.items() if not isinstance(found.get(name), kind)]
    if wrong:
        raise Unread(path, DAMAGED, f"is damaged: {', '.join(wrong)} missing, or of another type")
    return found


def _json(path: Path) -> Any:
    try:
        return orjson.loads(path.read_bytes())
    except OSError as error:
        raise Unread(path, DAMAGED, f"cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise Unread(path, DAMAGED, f"is no JSON: {error}") from error


@contextlib.contextmanager
def damage_told(folder: Path, *others: Path) -> Iterator[None]:
    """Around what reads records to their depth: of the right shape, one may still lack a part."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        which = "".join(f"or {other} " for other in others)
        raise Unread(folder, DAMAGED, f"{which}holds a damaged record: {type(error).__name__}: {error}") from error
