"""Every figure, table and experiment of the papers has a command, or a reason; the docs have the same table."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.messaging.benchmarks import PAPERS, Covered, coverage

COVERAGE_PAGE = Path(__file__).parents[3] / "docs" / "bench-coverage.md"


@pytest.mark.parametrize("row", [row for row in coverage() if row.command], ids=lambda row: row.item)
def test_a_command_is_one(row: Covered) -> None:
    """click takes its words; nothing is measured."""
    command, words = main, shlex.split(row.command)[1:]
    context = click.Context(main)
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert name
        assert found
        command, context = found, click.Context(found, info_name=name, parent=context)
    command.make_context(context.info_name, words)


def test_a_row_without_a_command_says_why() -> None:
    assert all(row.but for row in coverage() if not row.command)
    assert {row.paper for row in coverage()} == set(PAPERS)


def test_the_docs_have_the_same_table() -> None:
    lines = [
        line
        for line in COVERAGE_PAGE.read_text().splitlines()
        if line.startswith(tuple(f"| {each} |" for each in PAPERS))
    ]
    assert lines == [as_markdown(row) for row in coverage()]


def as_markdown(row: Covered) -> str:
    made = [f"`{row.command}`"] * bool(row.command) + [row.but] * bool(row.but)
    return f"| {row.paper} | {row.item} | {row.what} | {'; '.join(made)} |"


def test_the_command_prints_every_row() -> None:
    done = CliRunner().invoke(main, ["bench", "coverage"])
    assert done.exit_code == 0
    said = " ".join(done.stdout.split())
    assert all(row.command in said and row.but in said for row in coverage())
