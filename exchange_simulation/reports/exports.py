"""Records for other programs: as JSON, and as rows of CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import click
import orjson

from exchange.json_records import Record
from exchange_simulation.launching.files import json_bytes


def print_json(value: object) -> None:
    """Print a record, or rows, as indented JSON."""
    click.echo(json_bytes(value))


def print_csv(records: list[Record]) -> None:
    """Print a row for each record, with a column for every name that any record has: see `flat`."""
    rows = [flat(record) for record in records]
    columns: dict[str, None] = {}
    for row in rows:
        columns.update(dict.fromkeys(row))
    text = io.StringIO()
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    click.echo(text.getvalue(), nl=False)


def flat(record: Record) -> Record:
    """Return every single value of the record; names of nested values are joined by dots, lists are JSON."""
    return dict(_values_by_name(record, ""))


def _values_by_name(record: Record, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _values_by_name(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            yield f"{prefix}{name}", orjson.dumps(value).decode()
        else:
            yield f"{prefix}{name}", value
