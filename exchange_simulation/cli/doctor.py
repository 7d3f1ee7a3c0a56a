"""`exchange doctor`: what this machine can measure, and what to do about the rest."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exchange_simulation.launching.option_types import Seconds
from exchange_simulation.launching.options import json_option

if TYPE_CHECKING:
    from exchange_simulation.launching.doctor.items import Item

SHOWN_VERDICTS = {"good": ("good", "green"), "care": ("care", "yellow"), "no": ("no", "bold red"), "unknown": ("?", "")}
"""The word that is shown for each verdict, and its style."""


@click.command()
@click.option(
    "--seconds",
    type=Seconds(0.5, 600),
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
    from exchange_simulation.launching.doctor.items import summary_of
    from exchange_simulation.reports.exports import print_json

    if not as_json and sys.stderr.isatty():
        click.echo(f"listening for {seconds:g} s ...\r", err=True, nl=False)
    items = examine(seconds, Path(results))
    summary = summary_of(items)
    if as_json:
        print_json({"schema": SCHEMA, "answer": summary, "items": [asdict(item) for item in items]})
    else:
        _show(summary, items)


def _show(summary: str, items: Sequence[Item]) -> None:
    """Print the summary, then a row for each item: its name, its verdict, and sentences about it."""
    from rich.text import Text

    from exchange.words import printable
    from exchange_simulation.reports import tables

    table = tables.plain_table(tables.key_column(), tables.key_column(), tables.words_column(), header=False)
    for item in items:
        verdict, style = SHOWN_VERDICTS[item.verdict]
        lines = [item.found, *_histogram(item.figures)]
        if item.advice:
            lines.append(f"-> {item.advice}")
        table.add_row(item.name, Text(verdict, style), printable("\n".join(lines)))
    terminal = tables.terminal()
    terminal.print(printable(summary), style="bold", markup=False)
    terminal.print()
    terminal.print(table)


def _histogram(figures: Mapping[str, Any]) -> list[str]:
    """Return a line with a bar for each octave of lateness; an empty list if the figures have no octaves.

    A bar's height is the logarithm of the number of sleeps that were so late.
    """
    from math import log

    from exchange_simulation.reports.live.picture import ASCII_BLOCKS, BLOCKS

    counts = figures.get("octaves")
    if not counts:
        return []
    prints_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    shapes = BLOCKS if prints_unicode else ASCII_BLOCKS
    tallest = log(max(counts) + 1)
    bars = ""
    for count in counts:
        height = round(log(count + 1) / tallest * (len(shapes) - 1))
        bars += shapes[height] if count else " "
    last_bar_starts_us = 2 ** (len(counts) - 2)  # the first bar ends at 1 us, each later one at twice that
    return [f"1 us |{bars}| over {last_bar_starts_us / 1000:.0f} ms; a bar an octave, log scale"]
