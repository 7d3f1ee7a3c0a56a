"""What `exchange spark prepare` does, and says."""

from __future__ import annotations

import time

import click

from runs.errors import UserError
from spark.errors import SparkError
from spark.jobs import prepare as write_archive
from spark.sessions.java import find_java
from spark.sessions.session import session_archive


def prepare(again: bool) -> None:
    """UserError where this machine's sessions cannot have an archive."""
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
