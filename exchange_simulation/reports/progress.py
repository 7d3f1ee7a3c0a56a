"""The progress of a run on stderr: a bar in a terminal, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import IO, Any, cast

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.control import Control
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.segment import ControlType
from rich.text import Text

from exchange.settings import RunSettings
from exchange_simulation.launching.launch.watch import OnSecond
from exchange_simulation.launching.notices import has_listener, holding, printed_by, say
from transports.registry import scheme_of

LINE_EVERY_S = 5.0
"""The time between two lines about the progress."""
LEAST_BAR_WIDTH = len(" ") + 10
"""A bar that had less room is left out."""
MOST_ANSWERS = 10_000_000
"""A number as wide as any that is shown, if it is not known before how many there will be."""
CALL_EVERY_S = 1.0
"""The time between two calls of a listener, such as `on_progress` of the Python API."""

ONE_LINE_UP = Control((ControlType.CURSOR_UP, 1), ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
"""Moves to the line above, and erases it."""

OnCount = Callable[[int], None]
_line_above: ContextVar[RenderableType | None] = ContextVar("line_above", default=None)
"""The line that stands above the bar, such as a trial's bar."""
_place: ContextVar[str] = ContextVar("place", default="")


def part_of_whole(place: str) -> contextlib.AbstractContextManager[None]:
    """Return a context in which each bar begins with the place of its work in a larger one, as `3 of 12:`."""
    return holding(_place, place)


@contextlib.contextmanager
def progress_bar(settings: RunSettings) -> Iterator[OnSecond]:
    """Show a bar for one run; the context's value is to be called once a second."""
    if settings.orders_per_s is None:
        orders_of_pair = settings.orders  # None for a run of a duration: how many it sends is not known before
    else:
        orders_of_pair = settings.order_limit
    if orders_of_pair is None:
        total = None
        words_after_count = " orders"
    else:
        total = settings.pairs * orders_of_pair
        words_after_count = f" of {total:,} orders"
    with counting(scheme_of(settings.transport), total, words_after_count, "answered") as on_count:
        yield lambda moment: on_count(moment.answered)


@contextlib.contextmanager
def counting(work: str, total: int | None, words_after_count: str, verb: str) -> Iterator[OnCount]:
    """Show a bar, or print lines, for work named `work`; the context's value is to be called with the number done.

    A line: `work`, the number, `words_after_count`, `verb`. For example: tcp: 500 of 800 orders answered
    """
    console = screen()
    if console.is_terminal and not has_listener():
        with _bar(console, f"{_place.get()} {work}".lstrip(), total, words_after_count) as on_count:
            yield on_count
    else:
        yield _lines(work, words_after_count, verb)


@contextlib.contextmanager
def _bar(console: Console, work: str, total: int | None, words_after_count: str) -> Iterator[OnCount]:
    """Show a bar that is redrawn only when called: a livelier bar would take CPU from the run that is measured."""
    count_and_time = f"{total or MOST_ANSWERS:,}{words_after_count} 0:00:00"
    space = console.width - cell_len(count_and_time) - len(" ")
    columns: list[ProgressColumn] = [
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f}" + words_after_count),
        TimeRemainingColumn(),
    ]
    if cell_len(work) + LEAST_BAR_WIDTH <= space:
        columns.insert(1, BarColumn())
    elif cell_len(work) > space:
        work = f"{work[: max(space - 1, 0)]}…"  # the number and the time are shown whole
    bar = Progress(
        *columns,
        console=console,
        auto_refresh=False,
        transient=True,
    )

    def print_above(sentence: str) -> None:
        print_sentence_above(bar.console, sentence, _line_above.get())

    with bar, printed_by(print_above):
        task = bar.add_task(work, total=total)
        yield lambda count: bar.update(task, completed=count, refresh=True)


def print_sentence_above(console: Console, sentence: str, line: RenderableType | None) -> None:
    """Print a sentence above the line that was printed last; without a line, where the cursor is.

    A long sentence is not broken, so that a command in it can be pasted.
    """
    if line is None:
        console.print(Text(sentence), soft_wrap=True)
    else:
        console.print(ONE_LINE_UP, Text(sentence), line, soft_wrap=True)


def below(line: RenderableType) -> contextlib.AbstractContextManager[None]:
    """Return a context in which this line, printed last, stays the line above a bar when sentences are printed."""
    return holding(_line_above, line)


def _lines(work: str, words_after_count: str, verb: str) -> OnCount:
    """Return a function that prints a line about the count now and then."""

    def print_line(count: int) -> None:
        say(f"{work}: {count:,}{words_after_count} {verb}")

    def every_s() -> float:
        return CALL_EVERY_S if has_listener() else LINE_EVERY_S

    return now_and_then(print_line, every_s)


def now_and_then(on_count: OnCount, every_s: Callable[[], float]) -> OnCount:
    """Return a function that passes a count on unless the last one was passed on less than `every_s()` ago."""
    passed_s = time.monotonic()

    def on_each(count: int) -> None:
        nonlocal passed_s
        if time.monotonic() - passed_s >= every_s():
            passed_s = time.monotonic()
            on_count(count)

    return on_each


def screen(file: IO[str] | None = None) -> Console:
    """Return a console on stderr, or on `file`, that outlives its terminal."""
    return Console(file=cast(IO[str], FileThatMayClose(file or sys.stderr)), highlight=False)


class FileThatMayClose:
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
