"""What `exchange spark ingest` and `summary` do, and say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from pyspark.sql import SparkSession

from exchange.words import counted
from experiments.pipeline.finding import Found, find_runs
from experiments.pipeline.showing import show_summary, tell_ingest
from runs.errors import UserError
from spark.dataset.ingesting import RunSource, ingest_runs
from spark.dataset.manifest import Manifest, read_manifest
from spark.dataset.place import Place
from spark.dataset.summarizing import summarize_runs
from spark.errors import DatasetUnreadableError, SparkError, SparkUnavailableError, typed_errors
from spark.sessions.java import find_java
from spark.sessions.session import open_session

INGESTS_ON = "local[*]"
"""Spools lie on this machine, so they are read on it."""
TABLES = "tables"


def ingest(results: Path, tables: str | None, again: bool) -> int:
    """The exit code: 1 where a run was left out."""
    found, where = find_runs(results), tables or _default_place(results)
    if not found.sources:
        raise UserError(f"{results} holds no finished run: {next(iter(found.left_out.values()))}")
    with _session(INGESTS_ON, where) as spark:
        place = Place(spark, where)
        before = read_manifest(place)
        new = [source for source in found.sources if again or not _is_known(source, before)]
        after = ingest_runs(spark, place, new) if new else before
        tell_ingest(new, after, found, place.url)
    return 1 if found.left_out else 0


def summary(results: str, master: str, tables: str | None, as_json: bool) -> int:
    """The exit code."""
    where = tables or _default_place(Path(results))
    with _session(master, where) as spark:
        place = Place(spark, where)
        manifest = summarize_runs(spark, place)
        show_summary(spark, place, manifest, as_json)
    _warn_of_others(Path(results), manifest)
    return 0


def _default_place(results: Path) -> str:
    if not results.is_dir():
        raise UserError(f"{results} is no folder: give the folder of a run, of a trial, or one that holds some")
    if (results / "run.json").exists() or (results / "spool").exists():
        raise UserError(
            f"{results} is one run, whose own tables exchange report makes: "
            "give the folder that holds it, or say where with --tables"
        )
    return str(results / TABLES)


def _is_known(source: RunSource, manifest: Manifest) -> bool:
    name = (source.record.experiment, source.record.run)
    return any(run.name == name and run.fingerprint == source.fingerprint for run in manifest.runs)


def _warn_of_others(results: Path, manifest: Manifest) -> None:
    """Runs that were made since."""
    if not results.is_dir():
        return
    missing = [source for source in _found(results).sources if not _is_known(source, manifest)]
    if missing:
        click.echo(f"{counted(len(missing), 'runs')} of {results} not in it: exchange spark ingest {results}", err=True)


def _found(results: Path) -> Found:
    try:
        return find_runs(results)
    except UserError:
        return Found()


@contextmanager
def _session(master: str, where: str) -> Iterator[SparkSession]:
    """A sentence in place of a stack trace."""
    try:
        java = find_java()
        if java.note:
            click.echo(java.note, err=True)
        with open_session(master, java=java) as spark, typed_errors(where):
            yield spark
    except (SparkUnavailableError, DatasetUnreadableError) as error:
        raise UserError(str(error)) from error
    except SparkError as error:
        raise click.ClickException(str(error)) from error
