"""`exchange results show`: a run or a trial as the command that made it presented it."""

from __future__ import annotations

from pathlib import Path

import click

from cli.looking_back.finding import find
from runs.record.reading import damage_named


def show(results: Path, name: str, as_json: bool) -> None:
    """Its record's own bytes as JSON."""
    folder, kind = find(results, name)
    record = kind.read(folder)
    if as_json:
        click.echo((folder / kind.file).read_bytes(), nl=False)
        return
    with damage_named(folder):
        kind.show(folder, record)
