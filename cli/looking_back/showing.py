"""`exchange results show`: a run or a trial as the command that made it presented it."""

from __future__ import annotations

from pathlib import Path

import click

from cli.looking_back.finding import find
from runs.record.unread import damage_told


def show(results: Path, name: str, as_json: bool) -> None:
    """Its record's own bytes as JSON."""
    folder, kind = find(results, name)
    record = kind.read(folder)
    if as_json:
        click.echo((folder / kind.file).read_bytes(), nl=False)
        return
    with damage_told(folder):
        kind.show(folder, record)
