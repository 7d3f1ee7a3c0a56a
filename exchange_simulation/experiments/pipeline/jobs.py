"""The commands `ingest`, `summary`, `prepare` and `submit` of `exchange spark`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from pyspark.sql import SparkSession
from rich.text import Text

from exchange.words import counted, printable
from exchange_simulation.experiments.pipeline.masters import master_for
from exchange_simulation.experiments.pipeline.run_sources import RunSources, find_runs
from exchange_simulation.launching.errors import UserError, users_mistake
from exchange_simulation.launching.files import local_path
from exchange_simulation.reports.formats.few_orders import figure_cell
from exchange_simulation.reports.tables import FoldingTable, key_column, plain_table, terminal
from spark.dataset.folder import DatasetFolder, LocalFolder, as_url, is_local
from spark.dataset.folder_of_url import folder_to_change
from spark.dataset.ingesting import EventTables, Ingested, ingest_runs
from spark.dataset.runs import IngestedRun
from spark.dataset.summarizing import summarize_runs
from spark.errors import DatasetUnreadableError, SparkError, SparkUnavailableError, typed_errors
from spark.sessions.cluster import wait_for_executor
from spark.sessions.connect import connected_session
from spark.sessions.java import find_java
from spark.sessions.master import is_connect
from spark.sessions.session import open_session, session_archive, submit_job
from spark.sessions.settings import DRIVER_OPTIONS, with_overrides
from spark.warm_up import prepare as write_archive

INGEST_MASTER = "local[*]"
"""Ingest runs on this machine, since the spools are on its disk."""
TABLES = "tables"
LARGE_BYTES = 1 << 25
MOST_REASONS = 5
MOST_ROWS = 40
COLUMNS = {
    "offered/s": ("offered_orders_per_s", "{:,.0f}"),
    "runs": ("repeats", "{}"),
    "orders/s": ("orders_per_s", "{:,.0f}"),
    "mean us": ("handed_over_mean_us", "{:,.0f}"),
    "p50 due": ("due_p50_us", "{:,.0f}"),
    "p99 due": ("due_p99_us", "{:,.0f}"),
    "CPU s/M": ("cpu_s_per_million", "{:.1f}"),
}
"""By title in the terminal: the column in the table of arms, and its format."""


def ingest(results: Path, tables: str | None, again: bool, events: bool, settings: Mapping[str, str]) -> int:
    """Put the finished runs below `results` into tables; return the exit code, 1 if a run was left out."""
    runs = _finished_runs(results)
    url = tables or default_tables(results)
    event_tables = _event_tables() if events else None
    with _folder_to_fill(url, settings) as folder:
        ingested = ingest_runs(folder, runs.sources, again, event_tables)
        for sentence in _not_in_tables(ingested, runs.left_out):
            click.echo(sentence, err=True)
        summary_of_new_runs = f"{counted(ingested.new_runs, 'runs')} added ({ingested.records:,} records)"
        summary_of_all_runs = f"the tables now have {counted(ingested.runs, 'runs')}"
        click.echo(printable(f"{summary_of_new_runs}; {summary_of_all_runs}\ntables: {folder.url}"))
    if events:
        without_streams = [source for source in runs.sources if not source.has_streams]
        if without_streams:
            number = counted(len(without_streams), "runs")
            click.echo(f"{number} without events: exchange run --record keeps them", err=True)
    return 1 if runs.left_out else 0


def _finished_runs(results: Path) -> RunSources:
    """Find the runs below `results`. UserError if none of them is finished: the reason of the first one."""
    runs = find_runs(results)
    if not runs.sources:
        first_reason = next(iter(runs.left_out.values()))
        raise UserError(f"{results} holds no finished run: {first_reason}")
    return runs


@contextmanager
def session_with_tables(
    results: Path, tables: str | None, events: bool, settings: Mapping[str, str]
) -> Iterator[tuple[SparkSession, DatasetFolder]]:
    """Make all tables of the finished runs below `results`; yield a session, and their folder.

    The session is one of the tables' server, if there is one. UserError if no run is finished, SparkError if Spark
    cannot be used or the tables cannot be made. This is for callers in Python: unlike `session_for`, it leaves Spark's
    errors as they are, and prints no note about Java.
    """
    runs = _finished_runs(results)
    url = tables or default_tables(results)
    event_tables = _event_tables() if events else None
    master = master_for(url, None, settings)
    is_served = is_connect(master)
    session = connected_session(master, settings) if is_served else open_session(INGEST_MASTER, settings=settings)
    with session as spark:
        with typed_errors(url):
            folder = folder_to_change(spark, master, url)
            ingest_runs(folder, runs.sources, again=False, events=event_tables)
            summarize_runs(spark, folder)
        yield spark, folder


def ingest_trial(trial: Path) -> str | None:
    """Put the runs of a trial into the tables beside the trial's folder. SparkError.

    Returns lines for the user about the runs that were left out; None if there are none.
    """
    runs = find_runs(trial)
    url = as_url(str(trial.parent / TABLES))
    with typed_errors(url):
        ingested = ingest_runs(LocalFolder(url), runs.sources, again=False)
    lines = list(_not_in_tables(ingested, runs.left_out))
    return "\n".join(lines) if lines else None


@contextmanager
def _folder_to_fill(url: str, settings: Mapping[str, str]) -> Iterator[DatasetFolder]:
    """Yield the folder of the tables. Only a folder in another file system needs a session of Spark's."""
    if is_local(as_url(url)):
        with as_user_errors(), typed_errors(url):
            yield LocalFolder(as_url(url))
        return
    with open_dataset(INGEST_MASTER, url, settings) as (_, folder):
        yield folder


def _event_tables() -> EventTables:
    """Import the tables late: it loads the engine's kernels. UserError in a submitted job whose zip is not unpacked."""
    if not Path(__file__).exists():
        raise UserError(
            "a submitted job has no engine to make events with: "
            "run exchange spark ingest RESULTS --events on your machine instead"
        )
    from exchange_simulation.experiments.pipeline.events import EVENT_TABLES

    return EVENT_TABLES


def summary(
    results: str, given_master: str | None, tables: str | None, as_json: bool, settings: Mapping[str, str]
) -> int:
    """Summarize all runs in the tables; return the exit code."""
    url = tables or default_tables(Path(results))
    master = master_for(url, given_master, settings)
    if not is_connect(master):
        settings = with_overrides(compilers_for(url), settings)
    with open_dataset(master, url, settings) as (spark, folder):
        runs = summarize_runs(spark, folder)
        print_summary(folder, len(runs), as_json)
    _warn_of_missing(Path(results), runs)
    return 0


def prepare(again: bool) -> None:
    """Write the class archive. UserError if this machine's sessions cannot have one."""
    try:
        archive = session_archive(find_java())
        if archive is None:
            raise UserError(
                "Spark's classes cannot be archived here: neither your cache nor the temporary folder is yours"
            )
        if archive.is_written and not again:
            click.echo(f"done already: {archive.file}")
            return
        began_s = time.monotonic()
        write_archive()
    except SparkError as error:
        raise click.ClickException(f"Spark is not prepared: {error}") from error
    size_mb = archive.file.stat().st_size / 1e6
    click.echo(
        f"{archive.file}: {size_mb:.0f} MB in {time.monotonic() - began_s:.0f} s; Spark starts faster from now on"
    )


def submit(
    master: str, deploy_mode: str | None, settings: Mapping[str, str], job: str, arguments: Sequence[str]
) -> int:
    """Run a job through spark-submit; return its exit code, which is the job's."""
    command = [job] if job == "simulate" else ["spark", job]
    with users_mistake(SparkUnavailableError):
        return submit_job(master, deploy_mode, settings, [*command, *arguments])


def default_tables(results: Path) -> str:
    """Return the tables' folder in `results`. UserError if that is no folder, or a single run's."""
    if not os.path.isdir(results):
        raise UserError(f"{results} is no folder: give the folder of a run, of a trial, or one that holds some")
    if os.path.exists(results / "run.json") or os.path.exists(results / "spool"):
        raise UserError(
            f"{results} is a single run, and exchange report makes its tables: "
            "give the folder that holds it, or say where with --tables"
        )
    return str(results / TABLES)


def _warn_of_missing(results: Path, runs: Sequence[IngestedRun]) -> None:
    """Print how many runs below `results` are not in the tables."""
    if not os.path.isdir(results):
        return
    in_tables = {(run.name, run.fingerprint) for run in runs}
    with suppress(UserError):
        sources = find_runs(results).sources
        missing = [source for source in sources if (source.name, source.fingerprint) not in in_tables]
        if missing:
            advice = f"the tables lack {counted(len(missing), 'runs')}: exchange spark ingest {results}"
            click.echo(printable(advice), err=True)


@contextmanager
def open_dataset(
    master: str, tables: str, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[SparkSession, DatasetFolder]]:
    """Yield a session, and the folder of the tables, opened for writing."""
    with session_for(tables, master, settings) as spark:
        yield spark, folder_to_change(spark, master, tables)


def compilers_for(tables: str) -> dict[str, str]:
    """Return the setting that lets Java use its second compiler, if the tables are large or not on this machine.

    The compiler doubles the CPU time of a query over small tables, and makes a query over 100,000,000 events three
    times as fast.
    """
    local = local_path(tables)
    if local is None or sum(file.stat().st_size for file in local.rglob("*.parquet")) > LARGE_BYTES:
        return {DRIVER_OPTIONS: "-XX:TieredStopAtLevel=4"}
    return {}


@contextmanager
def session_for(tables: str, master: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a new session, or one of a Spark Connect server. UserError or ClickException for an error of Spark."""
    with as_user_errors(), ExitStack() as session:
        if is_connect(master):
            spark = session.enter_context(connected_session(master, settings))
        else:
            java = find_java()
            if java.note:
                click.echo(java.note, err=True)
            spark = session.enter_context(open_session(master, java=java, settings=settings))
            wait_for_executor(spark)
        with typed_errors(tables):
            yield spark


@contextmanager
def as_user_errors() -> Iterator[None]:
    """Turn an error of Spark into a UserError, if the user can mend it, or else into a ClickException."""
    try:
        yield
    except (SparkUnavailableError, DatasetUnreadableError) as error:
        raise UserError(str(error)) from error
    except SparkError as error:
        raise click.ClickException(str(error)) from error


def _not_in_tables(ingested: Ingested, left_out: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each run that did not go in, with the reason, and for each kind of line in quarantine."""
    for reason in list(left_out.values())[:MOST_REASONS]:
        yield f"left out: {reason}"
    if len(left_out) > MOST_REASONS:
        yield f"left out: {len(left_out) - MOST_REASONS} more"
    for (_, run), problems in sorted(ingested.unread.items()):
        for problem, lines in problems.items():
            yield f"{run}: {counted(lines, 'lines')} in quarantine, {problem}"


def print_summary(folder: DatasetFolder, runs: int, as_json: bool) -> None:
    """Print a row for each arm; with `as_json` all columns of the table of arms."""
    rows = [row for file in folder.files("arms") for row in folder.rows(file)]
    if as_json:
        click.echo(json.dumps({"tables": folder.url, "runs": runs, "arms": rows}, indent=2))
        return
    repeats = sum(row["repeats"] for row in rows)
    left_out = sum(row["left_out"] for row in rows)
    terminal().print(_table(rows[:MOST_ROWS]))
    if len(rows) > MOST_ROWS:
        click.echo(f"... and {len(rows) - MOST_ROWS} more arms in the table")
    without = f", without {counted(left_out, 'runs')} that do not count" if left_out else ""
    click.echo(printable(f"medians of {counted(repeats, 'runs')}{without}; tables: {folder.url}"))


def _table(rows: list[dict[str, Any]]) -> FoldingTable:
    """Return the rows as a table, grouped by experiment. An arm is named by its transport and its settings."""
    offered, *figure_titles = COLUMNS
    table = plain_table(key_column("arm"), key_column(offered, from_right=True), *figure_titles, gap=1)
    for experiment, arms in groupby(rows, lambda row: row["experiment"]):
        table.add_row(Text(experiment, "bold"))
        for arm in arms:
            figures = (figure_cell(arm, name, form) for name, form in COLUMNS.values())
            table.add_row(Text(f"  {arm['transport']} {arm['arm']}".rstrip()), *figures)
    return table
