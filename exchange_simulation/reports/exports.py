"""Records for other programs: rows of CSV, one for a run or for each arm of a trial; and the options of a report."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import orjson

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import json_bytes, write_whole
from exchange_simulation.launching.interrupts import signals_deferred

Row = dict[str, Any]
Some = TypeVar("Some")
ENDS = ("median", "low", "high")


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The parts of a report beside its page."""

    with_spark: bool = True
    figures: bool = False
    hlog: bool = False
    as_json: bool = False
    as_csv: bool = False

    @property
    def quiet(self) -> bool:
        """True if only the record goes to stdout."""
        return self.as_json or self.as_csv


def page_writer(file: str, page_html: Callable[[Row], str]) -> Callable[[Path, Row], Path]:
    """Return a function that writes a record's page into its folder, and returns the page's path."""

    @signals_deferred()
    def write_page(folder: Path, record: Row) -> Path:
        """Write the page, one offline file; it appears whole, by rename."""
        return write_whole(folder / file, page_html(record).encode())

    return write_page


def print_report(
    folder: Path,
    kind: str,
    record: Row,
    rows: list[Row] | Row,
    options: ReportOptions,
    show: Callable[[Row], None],
    write_page: Callable[[Path, Row], Path],
    write_figures: Callable[[], Path],
) -> int:
    """Print the rows of a record, or show it; then write its page, and figures if asked for.

    `kind` is that of the folder, in a word. Returns the exit code, 0. UserError for an export that only a run has.
    """
    if options.hlog:
        raise UserError(f"--hlog is of one run, and {folder} is a {kind}'s folder: give the folder of a run in it")
    if options.as_json:
        print_json(rows)
    elif options.as_csv:
        print_rows(map(flat, rows if isinstance(rows, list) else [rows]))
    else:
        show(record)
    click.echo(f"page: {write_page(folder, record)}", err=options.quiet)
    if options.figures:
        click.echo(f"figures: {write_figures()}", err=options.quiet)
    return 0


def print_measured(rows: object, as_json: bool, show: Callable[[], None], page: Path) -> None:
    """Print what a command has measured: the rows, or the record, as JSON; else show it and say where its page is."""
    if as_json:
        print_json(rows)
    else:
        show()
        click.echo(f"page: {page}")


def print_json(value: object) -> None:
    """Print a record, or rows, as indented JSON."""
    click.echo(json_bytes(value))


def grouped(records: Iterable[Some], name_of: Callable[[Some], str]) -> dict[str, list[Some]]:
    """Return the records of each name; names and records stay in their order."""
    named: dict[str, list[Some]] = {}
    for record in records:
        named.setdefault(name_of(record), []).append(record)
    return named


def trial_rows(record: Row) -> list[Row]:
    """Return a row for each arm: its name, the settings in which arms differ, every metric, null where unmeasured."""
    settings = [orjson.loads(json_bytes(arm["settings"])) for arm in record["arms"]]
    varying = [name for name in settings[0] if any(other.get(name) != settings[0][name] for other in settings)]
    rows: list[Row] = []
    for arm, settings_of_arm in zip(record["arms"], settings, strict=True):
        rows.append(
            {
                "contender": arm["contender"],
                "block": arm["block"],
                "settings": {name: settings_of_arm.get(name) for name in varying},
                "runs": len(arm["runs"]),
                "saturated": arm["saturated"],
                "held": arm["held"],
                "metrics": {name: _median_and_ends(arm["metrics"].get(name, {})) for name in record["metrics"]},
            }
        )
    return rows


def _median_and_ends(estimate: Row) -> Row:
    """Return an estimate's median and interval; every value is None if it was not measured."""
    return {end: estimate.get(end) for end in ENDS}


def flat(row: Row) -> Row:
    """Return every single value of the record; names of nested values are joined by dots, lists are JSON."""
    return dict(_leaves(row, ""))


def _leaves(record: Row, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            yield f"{prefix}{name}", orjson.dumps(value).decode()
        else:
            yield f"{prefix}{name}", value


def print_rows(rows: Iterable[Row]) -> None:
    """Print CSV with a column for every name that any row has."""
    rows = list(rows)
    columns = dict.fromkeys(name for row in rows for name in row)
    text = io.StringIO()
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    click.echo(text.getvalue(), nl=False)
