"""The tables of a run or a trial, made last; Ctrl-C leaves them out. Of a run, Spark makes the last two of them."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from exchange_simulation.launching.interrupts import in_background
from exchange_simulation.launching.notices import has_listener, say

SAY_EVERY_S = 10.0


def make_tables(folder: Path, quiet: bool) -> bool:
    """Make a run's tables, the last two by Spark; return False if that failed: a run without them is still a run."""
    return hand_over(
        folder, "spark.run_tables:summarize", str(folder / "tables"), f"exchange report {folder} --spark", quiet
    )


def are_made(folder: Path) -> bool:
    """Return whether the last of a run's tables is there, and newer than the files that they are made of."""
    last_table = folder / "tables" / "sample_summary.parquet"
    if not last_table.exists():
        return False
    made_ns = last_table.stat().st_mtime_ns
    spool = folder / "spool"
    for source in (folder / "run.json", spool, *spool.glob("*.jsonl")):
        if not source.exists() or source.stat().st_mtime_ns >= made_ns:
            return False
    return True


def hand_over(folder: Path, job: str, tables: str, again: str, quiet: bool) -> bool:
    """Make tables of the contents of `folder`; return False if that failed.

    ModuleNotFoundError if the extra `spark` is not installed.

    `job` names a function, as module:name, which returns a note for the user; its module takes long to import. `tables`
    is the place of the tables for the user; `again` is the command that makes them later.
    """
    begun_s = time.monotonic()
    importlib.import_module("pyarrow")  # without the extra `spark`, nothing is made that a user could wait for
    try:
        with waiting("making the tables; Ctrl-C leaves them out"):
            from spark.errors import SparkError

            try:
                note: str | None = pkgutil.resolve_name(job)(folder)
            except SparkError as error:
                click.echo(f"not all tables are made: {error}", err=True)
                return False
    except KeyboardInterrupt:
        click.echo(f"not all tables are made: interrupted; make them with: {again}", err=True)
        return False
    if note:
        click.echo(note, err=True)
    click.echo(f"tables: {tables} ({time.monotonic() - begun_s:.0f} s)", err=quiet)
    return True


@contextmanager
def waiting(sentence: str) -> Iterator[None]:
    """Print `sentence` on stderr while the block runs: in a terminal with a clock, elsewhere once, then reminders."""
    if has_listener():
        say(sentence)
        yield
        return
    if sys.stderr.isatty():
        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            progress.add_task(sentence, total=None)
            yield
        return
    click.echo(sentence, err=True)
    with in_background(_remind):
        yield


def _remind(is_over: threading.Event) -> None:
    begun_s = time.monotonic()
    while not is_over.wait(SAY_EVERY_S):
        click.echo(f"still at it, after {time.monotonic() - begun_s:.0f} s", err=True)
