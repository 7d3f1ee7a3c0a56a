"""Reads a record from its file, or says in a sentence why it cannot be used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from exchange.json_records import DAMAGED, Record, UnusableRecord, decode
from runs.errors import UserError

UNFINISHED = "unfinished"


class Unusable(click.ClickException):
    """A record that cannot be used; `status` is unfinished, damaged or newer."""

    def __init__(self, path: Path, status: str, why: str) -> None:
        super().__init__(f"{path} {why}")
        self.status, self.reason = status, f"{path.name} {why}"


def read_record(path: Path, kind: type) -> Record:
    """The file's record, checked against `kind`. Unusable if it is damaged, or of a newer schema."""
    try:
        return decode(path.read_bytes(), kind)
    except OSError as error:
        raise Unusable(path, DAMAGED, f"cannot be read: {error.strerror}") from error
    except UnusableRecord as error:
        raise Unusable(path, error.status, str(error)) from error


def record_for_report(path: Path, kind: type) -> Record:
    """The same for a report: there a damaged record is a mistake that the user can mend, so UserError."""
    try:
        return read_record(path, kind)
    except Unusable as error:
        raise UserError(_with_advice(error.message, error.status)) from error


def damaged(where: str, why: str) -> UserError:
    """The error about a file that cannot be used for a report."""
    return UserError(_with_advice(f"{where} {why}", DAMAGED))


def _with_advice(sentence: str, status: str) -> str:
    advice = "; restore it, or move it away and make the report of what is left"
    return sentence + advice if status == DAMAGED else sentence


@contextlib.contextmanager
def damage_named(folder: Path, *others: Path) -> Iterator[None]:
    """Turns what a damaged part of a record raises, deep in what shows it, into Unusable."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        which = "".join(f"or {other} " for other in others)
        raise Unusable(folder, DAMAGED, f"{which}holds a damaged record: {type(error).__name__}: {error}") from error
