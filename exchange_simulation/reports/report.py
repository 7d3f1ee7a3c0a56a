"""What `exchange report` does with every kind of folder: print the record, then write its page and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from exchange.json_records import Record
from exchange.words import printable
from exchange_simulation.launching.errors import UserError, advice_on_missing
from exchange_simulation.launching.files import write_whole
from exchange_simulation.launching.interrupts import signals_deferred
from exchange_simulation.launching.notices import prints_one_line
from exchange_simulation.reports.exports import print_csv, print_json
from exchange_simulation.reports.gate_outcomes import read_outcomes
from exchange_simulation.reports.gate_sentences import show_gate


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The parts of a report beside its page."""

    with_spark: bool = False
    figures: bool = False
    hlog: bool = False
    as_json: bool = False
    as_csv: bool = False

    @property
    def quiet(self) -> bool:
        """True if only the record goes to stdout."""
        return self.as_json or self.as_csv


@signals_deferred()
def write_html(file: Path, html: str) -> Path:
    """Write a page, one offline file, and return its path. The file appears whole, by rename."""
    return write_whole(file, html.encode())


def print_report(
    folder: Path,
    kind: str,
    record: Record,
    json_value: Record | list[Record],
    csv_rows: list[Record],
    options: ReportOptions,
    show: Callable[[Record], None],
    write_page: Callable[[Path, Record], Path],
    write_figures: Callable[[], Path],
) -> int:
    """Print a record as JSON or CSV, or show it; then write its page, and figures if asked for. Return exit code 0.

    `kind` is a noun for the folder in error messages, such as capacity. UserError if --hlog was given.
    """
    if options.with_spark:
        raise UserError(f"--spark is of one run, and {folder} is a {kind}'s folder: exchange spark ingest takes many")
    if options.hlog:
        raise UserError(f"--hlog is of one run, and {folder} is a {kind}'s folder: give the folder of a run in it")
    if options.as_json:
        print_json(json_value)
    elif options.as_csv:
        print_csv(csv_rows)
    else:
        show(record)
        show_gate(read_outcomes(folder))
    click.echo(printable(f"page: {write_page(folder, record)}"), err=options.quiet)
    if options.figures:
        click.echo(printable(f"figures: {write_figures()}"), err=options.quiet)
    return 0


def outcome_line(headline: str, noise: str) -> str:
    """Return the outcome in one line. A banner of noise stands in brackets behind it."""
    return printable(" ".join(f"{headline} ({noise})".split()) if noise else headline)


def page_unless_missing(write: Callable[[], Path]) -> Path | None:
    """Write a page and return its path; None if the library that draws it is not installed."""
    try:
        return write()
    except ModuleNotFoundError as error:
        if advice_on_missing(error) is None:
            raise
        return None


def place_line(folder: Path, page: Path | None, missing: Sequence[str] = ()) -> str:
    """Return the last line of a measurement: its page, or its folder if it has none, and how to get what it lacks.

    `missing` names what else needs the extra `report`.

    For example: results: results/mine, without a page: pip install '.[report]' adds it
    """
    place = f"results: {folder}" if page is None else f"page: {page}"
    lacks = [*([] if page else ["a page"]), *missing]
    if lacks:
        place += (
            f", without {' and '.join(lacks)}: pip install '.[report]' adds {'it' if lacks == ['a page'] else 'them'}"
        )
    return printable(place)


def print_measured(rows: object, as_json: bool, show: Callable[[], None], page: Path, line: str) -> None:
    """Print what a command has measured.

    As JSON the rows, or the record; with --quiet `line` alone; else everything, and where the page is, or the folder if
    no page could be drawn.
    """
    if as_json:
        print_json(rows)
    elif prints_one_line():
        click.echo(line)
    else:
        show()
        click.echo(place_line(page.parent, page if page.exists() else None))
