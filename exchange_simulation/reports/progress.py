"""The progress of a run on stderr: a bar in a terminal, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, Any, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from exchange.settings import RunSettings
from exchange_simulation.launching.launch.watch import OnSecond
from exchange_simulation.launching.notices import has_listener, say
from transports.registry import scheme_of

LINE_EVERY_S = 5.0
"""The time between two lines about the progress."""
CALL_EVERY_S = 1.0
"""The time between two calls of a listener, such as `on_progress` of the Python API."""

OnCount = Callable[[int], None]


@contextlib.contextmanager
def progress_bar(settings: RunSettings) -> Iterator[OnSecond]:
    """Show a bar for one run; the context's value is to be called once a second."""
    orders_a_pair = settings.orders if settings.orders_per_s is None else settings.order_limit
    if orders_a_pair is None:
        total = None
        of_total = " orders"
    else:
        total = settings.pairs * orders_a_pair
        of_total = f" of {total:,} orders"
    with counting(scheme_of(settings.transport), total, of_total, "answered") as on_count:
        yield lambda moment: on_count(moment.answered)


@contextlib.contextmanager
def counting(work: str, total: int | None, of_total: str, done: str) -> Iterator[OnCount]:
    """Show a bar, or print lines, for work named `work`; the context's value is to be called with the number done."""
    console = screen()
    if console.is_terminal and not has_listener():
        with _bar(console, work, total, of_total) as on_count:
            yield on_count
    else:
        yield _lines(work, of_total, done)


@contextlib.contextmanager
def _bar(console: Console, work: str, total: int | None, of_total: str) -> Iterator[OnCount]:
    """Show a bar that is redrawn only when called: a livelier bar would take CPU from the run that is measured."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}" + of_total),
        TimeRemainingColumn(),
        console=console,
        auto_refresh=False,
        transient=True,
    )
    with bar:
        task = bar.add_task(work, total=total)
        yield lambda count: bar.update(task, completed=count, refresh=True)


def _lines(work: str, of_total: str, done: str) -> OnCount:
    """Return a function that prints a line about the count now and then."""

    def print_line(count: int) -> None:
        say(f"{work}: {count:,}{of_total} {done}")

    def every_s() -> float:
        return CALL_EVERY_S if has_listener() else LINE_EVERY_S

    return now_and_then(print_line, every_s)


def now_and_then(on_count: OnCount, every_s: Callable[[], float]) -> OnCount:
    """Return a function that passes a count on once the time since the one before is over."""
    passed_s = time.monotonic()

    def on_each(count: int) -> None:
        nonlocal passed_s
        if time.monotonic() - passed_s >= every_s():
            passed_s = time.monotonic()
            on_count(count)

    return on_each


def screen(file: IO[str] | None = None) -> Console:
    """Return a console on stderr, or on `file`, that outlives its terminal."""
    return Console(file=cast(IO[str], Lasting(file or sys.stderr)), highlight=False)


class Lasting:
    """A file that ignores failed writes: a terminal that is closed in the middle does not end the run."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
