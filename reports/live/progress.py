"""What a run says on stderr while it goes on: a bar in a terminal, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from exchange.settings import RunSettings
from reports.live.screen import screen
from runs.launch.watch import OnSecond
from transports.registry import scheme_of

SAY_EVERY_S = 5.0


OnCount = Callable[[int], None]


@contextlib.contextmanager
def progress_bar(settings: RunSettings) -> Iterator[OnSecond]:
    """Called once a second."""
    each = settings.order_limit if settings.orders_per_s is not None else settings.orders
    total = None if each is None else settings.pairs * each
    of_total = " orders" if total is None else f" of {total:,} orders"
    with counting(scheme_of(settings.transport), total, of_total, "answered") as on_count:
        yield lambda moment: on_count(moment.answered)


@contextlib.contextmanager
def counting(what: str, total: int | None, of_total: str, done: str) -> Iterator[OnCount]:
    """Called now and then with how many are done."""
    console = screen()
    if console.is_terminal:
        with _bar(console, what, total, of_total) as on_count:
            yield on_count
    else:
        yield _lines(what, of_total, done)


@contextlib.contextmanager
def _bar(console: Console, what: str, total: int | None, of_total: str) -> Iterator[OnCount]:
    """Drawn when it is told: a livelier one would take CPU from what is measured."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f}" + of_total),
        TimeRemainingColumn(), console=console, auto_refresh=False, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.update(task, completed=count, refresh=True)


def _lines(what: str, of_total: str, done: str) -> OnCount:
    said_s = time.monotonic()

    def on_count(count: int) -> None:
        nonlocal said_s
        if time.monotonic() - said_s >= SAY_EVERY_S:
            said_s = time.monotonic()
            click.echo(f"{what}: {count:,}{of_total} {done}", err=True)

    return on_count
