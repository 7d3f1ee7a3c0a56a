"""Records as rows: one of a run, one an arm of a trial."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

import click
import orjson

Row = dict[str, Any]


def trial_rows(record: Row) -> list[Row]:
    """An arm each: what it is, in which settings it differs from others, and every metric."""
    settings = [orjson.loads(orjson.dumps(arm["settings"])) for arm in record["arms"]]
    varying = [name for name in settings[0] if any(other.get(name) != settings[0][name] for other in settings)]
    return [
        {
            "contender": arm["contender"],
            "block": arm["block"],
            "settings": {name: own.get(name) for name in varying},
            "runs": len(arm["runs"]),
            "saturated": arm["saturated"],
            "held": arm["held"],
            "metrics": {name: _estimate(arm["metrics"].get(name)) for name in record["metrics"]},
        }
        for arm, own in zip(record["arms"], settings, strict=True)
    ]


def _estimate(found: Row | None) -> Row:
    """Null, each, where no run measured it."""
    return {name: (found or {}).get(name) for name in ("median", "low", "high")}


def run_row(record: Row) -> Row:
    """Everything of run.json that is one value, or a list as JSON."""
    return flat(record)


def flat(row: Row) -> Row:
    """Names of nested parts joined by dots."""
    return dict(_leaves(row, ""))


def _leaves(part: Row, before: str) -> Iterator[tuple[str, Any]]:
    for name, value in part.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{before}{name}.")
        elif isinstance(value, list):
            yield f"{before}{name}", orjson.dumps(value).decode()
        else:
            yield f"{before}{name}", value


def print_rows(rows: Iterable[Row]) -> None:
    """As CSV, with a column for whatever any row has."""
    rows = list(rows)
    columns = dict.fromkeys(name for row in rows for name in row)
    text = io.StringIO()
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    click.echo(text.getvalue(), nl=False)
