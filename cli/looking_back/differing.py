"""`exchange results diff`: what differs between two runs, or two trials."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from cli.looking_back.finding import find
from runs.errors import UserError
from runs.record.reading import damage_named


def show_difference(results: Path, first: str, second: str, as_json: bool) -> None:
    (one, kind), (other, other_kind) = find(results, first), find(results, second)
    if kind is not other_kind:
        raise UserError(f"{one} is a {kind.name} and {other} is a {other_kind.name}: give two of a kind")
    records = kind.read(one), kind.read(other)
    with damage_named(one, other):
        difference = kind.differ(*records)
        if as_json:
            click.echo(orjson.dumps(difference, option=orjson.OPT_INDENT_2))
        else:
            kind.show_difference(difference)
