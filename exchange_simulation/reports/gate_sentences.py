"""Prints the outcomes of a gate, a line each."""

from __future__ import annotations

import sys
import textwrap

import click

from exchange.words import printable
from exchange_simulation.reports.gate_outcomes import GateOutcomes
from exchange_simulation.reports.tables import columns


def show_gate(outcomes: GateOutcomes, *, to_stderr: bool = False) -> None:
    """Print a line for each check, for each condition of which no check is decided, and for each note on a baseline."""
    for check in outcomes.checks:
        _print_sentence(check.line, to_stderr=to_stderr)
    for note in (*outcomes.notes_on_undecided, *outcomes.baseline_notes):
        _print_sentence(note, to_stderr=to_stderr)


def _print_sentence(sentence: str, *, to_stderr: bool) -> None:
    """Print a sentence: wrapped between words in a terminal, on one line in a pipe, where programs search for it."""
    text = printable(sentence)
    stream = sys.stderr if to_stderr else sys.stdout
    if stream.isatty():
        text = textwrap.fill(text, columns(), break_long_words=False, break_on_hyphens=False)
    click.echo(text, err=to_stderr)
