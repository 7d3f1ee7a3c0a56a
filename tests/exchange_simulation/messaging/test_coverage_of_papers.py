"""Every figure, table and experiment of the papers has a command, or a reason; the docs have the same table."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.messaging.benchmarks import PAPERS, PaperItem, coverage

COVERAGE_PAGE = Path(__file__).parents[3] / "docs" / "bench-coverage.md"
ITEMS_WITH_COMMAND = [item for item in coverage() if item.command]


@pytest.mark.parametrize("item", ITEMS_WITH_COMMAND, ids=lambda item: item.item)
def test_click_accepts_the_command_of_an_item(item: PaperItem) -> None:
    """Click parses the command's words; nothing is measured."""
    _, *words = shlex.split(item.command)
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        name, subcommand, words = command.resolve_command(context, words)
        assert name
        assert subcommand
        command = subcommand
        context = click.Context(command, info_name=name, parent=context)
    command.make_context(context.info_name, words)


def test_an_item_without_a_command_has_a_reason() -> None:
    for item in coverage():
        assert item.command or item.note, item


def test_every_paper_has_items() -> None:
    assert {item.paper for item in coverage()} == set(PAPERS)


def test_the_docs_have_the_same_table() -> None:
    row_starts = tuple(f"| {paper} |" for paper in PAPERS)
    lines = COVERAGE_PAGE.read_text().splitlines()

    documented_rows = [line for line in lines if line.startswith(row_starts)]

    assert documented_rows == [as_markdown(item) for item in coverage()]


def as_markdown(item: PaperItem) -> str:
    """The item's row in the docs."""
    remarks = []
    if item.command:
        remarks.append(f"`{item.command}`")
    if item.note:
        remarks.append(item.note)
    return f"| {item.paper} | {item.item} | {item.title} | {'; '.join(remarks)} |"


def test_the_command_prints_every_item() -> None:
    finished = CliRunner().invoke(main, ["bench", "coverage"])

    assert finished.exit_code == 0
    output = " ".join(finished.stdout.split())
    for item in coverage():
        assert item.command in output
        assert item.note in output
