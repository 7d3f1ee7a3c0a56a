"""The window of `exchange run --live`, drawn when the gateway says that a second is over, and at no other time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from exchange.seconds import Reading
from exchange.settings import RunSettings
from reports.live.figures import Figures
from reports.live.graph import BLOCKS, PLAIN
from reports.live.growing_spool import GrowingSpool
from reports.live.headline import Headline
from reports.live.picture import COLUMNS, picture
from reports.live.screen import screen
from runs.errors import UserError
from runs.launch.watch import Moment, OnSecond


def terminal() -> Console:
    """Where it is drawn. UserError where stderr takes no drawing."""
    console = screen()
    if not console.is_interactive:
        told = "--live draws in a terminal, and stderr is none"
        raise UserError(f"{told}: leave it out, and the run says now and then how far it is")
    return console


@contextlib.contextmanager
def live_window(settings: RunSettings, console: Console, folder: Path) -> Iterator[OnSecond]:
    """What it showed last stays, unless it never showed a second."""
    window = Window(settings, console, folder)
    live = Live(window.before(), console=console, auto_refresh=False, transient=True, redirect_stdout=False)

    def on_second(moment: Moment) -> None:
        live.transient = False
        live.update(window.at(moment), refresh=True)

    with live:
        yield on_second
        if not live.transient:
            live.update(window.at_the_end())


class Window:
    """Follows a run's spool."""

    def __init__(self, settings: RunSettings, console: Console, folder: Path) -> None:
        self._console, self._headline = console, Headline(settings)
        self._is_scheduled = settings.orders_per_s is not None
        self._spool, self._figures = GrowingSpool(folder, settings.reporters), Figures(settings.pairs)
        self._start_ns: int | None = None

    def before(self) -> Text:
        return Text(self._headline.before, no_wrap=True, overflow="crop")

    def at(self, moment: Moment) -> Text:
        """The picture when a second is over; the newest that it shows is the one before that."""
        now_ns = time.monotonic_ns()
        self._start_ns = self._start_ns or now_ns - 1_000_000_000
        elapsed_s = (now_ns - self._start_ns) / 1e9
        if moment.broker_cpu_s is not None:
            self._figures.take_cpu("broker", round(elapsed_s) - 1, Reading(now_ns, moment.broker_cpu_s))
        return self._picture(self._headline.at(moment.answered, elapsed_s))

    def at_the_end(self) -> Text:
        """With the seconds that were still to come."""
        return self._picture(self._headline.at_the_end)

    def _picture(self, headline: str) -> Text:
        for record in self._spool.fresh():
            self._figures.take(record)
        blocks = PLAIN if self._console.options.ascii_only else BLOCKS
        return picture(headline, self._figures, self._is_scheduled, min(self._console.width, COLUMNS), blocks)
