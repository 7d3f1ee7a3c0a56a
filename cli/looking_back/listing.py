"""`exchange results list`: a line for each run and trial of a directory, the newest last."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click
import orjson

from cli.looking_back.finding import folders
from cli.looking_back.kinds import kind_of
from cli.looking_back.row import Row
from cli.looking_back.table import lines
from exchange.words import counted


def show_list(results: Path, transport: str | None, status: str | None, last: int | None, as_json: bool) -> None:
    """What is no folder of ours is counted, and no more."""
    kinds = {folder: kind_of(folder) for folder in folders(results)}
    rows = sorted((kind.row(folder) for folder, kind in kinds.items() if kind), key=_at)
    chosen = [row for row in rows if transport in {None, *row.transports} and status in {None, row.status}]
    chosen = chosen[-last:] if last else chosen
    if as_json:
        click.echo(orjson.dumps([asdict(row) for row in chosen], option=orjson.OPT_INDENT_2))
    elif chosen:
        click.echo("\n".join(lines(chosen)))
    else:
        there = f"none of {counted(len(rows), 'runs and trials')} is so" if rows else "no run and no trial"
        click.echo(f"{results}: {there}", err=True)
    if others := len(kinds) - len(rows):
        click.echo(f"not listed: {counted(others, 'folders')} of {results} that no run or trial left", err=True)


def _at(row: Row) -> tuple[float, str]:
    """When it started; where its record does not tell, when something was last put into its folder."""
    for told in (row.started_at, row.last_written_at):
        with contextlib.suppress(TypeError, ValueError):
            return datetime.fromisoformat(told).timestamp(), row.name  # type: ignore[arg-type]
    return 0.0, row.name
