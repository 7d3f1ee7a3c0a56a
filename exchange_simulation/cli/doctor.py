"""`exchange doctor`: what this machine can measure, and what to do about the rest."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exchange_simulation.launching.option_types import Number
from exchange_simulation.launching.options import json_option

if TYPE_CHECKING:
    from exchange_simulation.launching.doctor.items import Item

MARKS = {"good": ("good", "green"), "care": ("care", "yellow"), "no": ("no", "bold red"), "unknown": ("?", "")}


@click.command()
@click.option(
    "--seconds",
    type=Number(0.5, 600),
    default=5.0,
    show_default=True,
    help="How long to listen for other work, steal and late wake-ups.",
)
@click.option(
    "--results",
    default="results",
    show_default=True,
    metavar="DIR",
    help="The folder for results, whose disk is examined.",
)
@json_option
def command(seconds: float, results: str, as_json: bool) -> None:
    """What this machine can measure: one sentence, then a line for each thing, with what to do.

    It changes nothing, and exits with 0 whatever it finds.

    Example: exchange doctor --seconds 10
    """
    from exchange.json_records import SCHEMA
    from exchange_simulation.launching.doctor.examination import examine
    from exchange_simulation.launching.doctor.items import answer
    from exchange_simulation.reports.exports import print_json

    if not as_json and sys.stderr.isatty():
        click.echo(f"listening for {seconds:g} s ...\r", err=True, nl=False)
    items = examine(seconds, Path(results))
    if as_json:
        print_json({"schema": SCHEMA, "answer": answer(items), "items": [asdict(item) for item in items]})
        return
    _show(answer(items), items)


def _show(sentence: str, items: Sequence[Item]) -> None:
    from rich.text import Text

    from exchange_simulation.reports.tables import key, plain_table, terminal, words

    table = plain_table(key(), key(), words(), header=False)
    for item in items:
        verdict, style = MARKS[item.verdict]
        lines = [item.found, *_histogram(item.figures)]
        if item.advice:
            lines.append(f"-> {item.advice}")
        table.add_row(item.name, Text(verdict, style), "\n".join(lines))
    terminal().print(sentence, style="bold", markup=False)
    terminal().print()
    terminal().print(table)


def _histogram(figures: Mapping[str, Any]) -> list[str]:
    """A line with a bar for each octave of lateness, as tall as the logarithm of the number of sleeps in it.

    Empty if the figures have no octaves.
    """
    from math import log

    from exchange_simulation.reports.live.picture import BLOCKS, PLAIN

    counts = figures.get("octaves")
    if not counts:
        return []
    prints_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    shapes = BLOCKS if prints_unicode else PLAIN
    tallest = log(max(counts) + 1)
    bars = ""
    for count in counts:
        height = round(log(count + 1) / tallest * (len(shapes) - 1))
        bars += shapes[height] if count else " "
    last_octave_ms = 2 ** (len(counts) - 2) / 1000
    return [f"1 us |{bars}| over {last_octave_ms:.0f} ms; a bar an octave, log scale"]
