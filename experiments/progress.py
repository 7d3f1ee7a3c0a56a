"""What a run says on stderr while it goes on: a bar in a terminal, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from exchange.settings import RunSettings
from experiments.moment import Moment, OnSecond
from experiments.screen import screen
from transports.registry import scheme_of

SAY_EVERY_S = 5.0


@contextlib.contextmanager
def progress_bar(settings: RunSettings) -> Iterator[OnSecond]:
    """Called once a second."""
    console, scheme = screen(), scheme_of(settings.transport)
    total = settings.order_limit if settings.orders_per_s is not None else settings.orders
    of_total = " orders" if total is None else f" of {total:,} orders"
    if console.is_terminal:
        with _bar(console, scheme, total, of_total) as on_second:
            yield on_second
    else:
        yield _lines(scheme, of_total)


@contextlib.contextmanager
def _bar(console: Console, scheme: str, total: int | None, of_total: str) -> Iterator[OnSecond]:
    """Drawn once a second: a livelier one would take CPU from what is measured."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f}" + of_total),
        TimeRemainingColumn(), console=console, auto_refresh=False, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task(scheme, total=total)
        yield lambda moment: bar.update(task, completed=moment.answered, refresh=True)


def _lines(scheme: str, of_total: str) -> OnSecond:
    said_s = time.monotonic()

    def on_second(moment: Moment) -> None:
        nonlocal said_s
        if time.monotonic() - said_s >= SAY_EVERY_S:
            said_s = time.monotonic()
            click.echo(f"{scheme}: {moment.answered:,}{of_total} answered", err=True)

    return on_second
