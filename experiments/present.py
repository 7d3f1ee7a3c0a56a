"""What a run says in the terminal: a bar while it goes on, its result in less than 80 columns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from exchange.settings import RunSettings
from transports.registry import scheme_of


@contextlib.contextmanager
def progress_bar(settings: RunSettings) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, drawn once a second: a livelier one would take CPU from what is measured."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} of {task.total:,.0f} orders"),
        TimeRemainingColumn(), console=Console(stderr=True), auto_refresh=False, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task(scheme_of(settings.transport), total=settings.order_limit)

        def on_second(sent: int, answered: int) -> None:  # noqa: ARG001
            bar.update(task, completed=answered, refresh=True)

        yield on_second


def show_record(record: dict[str, Any]) -> None:
    click.echo(f"{record['status']}  {record['name']}")
    for reason in record["reasons"]:
        click.echo(f"  {reason}")


def show_spark(folder: Path, quiet: bool) -> None:
    pass


def show_page(folder: Path, quiet: bool) -> None:
    pass
