"""A run's last minute, followed in its spool: as the window of `exchange run --live`, and as data for a browser."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.live import Live
from rich.text import Text

from exchange.instances import spool_file
from exchange.records import PROCESS, TRAFFIC
from exchange.seconds import Once
from exchange.settings import RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.launch.watch import Moment, OnSecond
from exchange_simulation.reports.live.figures import Figures
from exchange_simulation.reports.live.picture import BLOCKS, PLAIN, WIDTH, Headline, groups, picture
from exchange_simulation.reports.progress import screen


def terminal() -> Console:
    """Return the terminal on stderr. UserError if stderr is not a terminal."""
    console = screen()
    if not console.is_interactive:
        raise UserError(
            "--live draws in a terminal, and stderr is none: leave it out, and the run says now and then how far it is"
        )
    return console


@contextlib.contextmanager
def live_window(settings: RunSettings, console: Console, folder: Path) -> Iterator[OnSecond]:
    """Show the live window. The last picture stays in the terminal if any second was shown."""
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
    """The pictures of one run, from its spool."""

    def __init__(self, settings: RunSettings, console: Console, folder: Path) -> None:
        self._console = console
        self._headline = Headline(settings)
        self._is_scheduled = settings.orders_per_s is not None
        self._spool = GrowingSpool(folder, settings.reporters)
        self._figures = Figures(settings.pairs)
        self._start_ns: int | None = None

    def before(self) -> Text:
        return Text(self._headline.before, no_wrap=True, overflow="crop")

    def at(self, moment: Moment) -> Text:
        """Return the picture when a second is over; the newest second that it shows is the one before."""
        now_ns = time.monotonic_ns()
        self._start_ns = self._start_ns or now_ns - 1_000_000_000
        elapsed_s = (now_ns - self._start_ns) / 1e9
        if moment.broker_cpu_s is not None:
            used = {"second": round(elapsed_s) - 1, "cpu_s": moment.broker_cpu_s}
            self._figures.take([{"kind": PROCESS, "source": "broker", "monotonic_ns": now_ns, "payload": used}])
        return self._picture(self._headline.at(moment.answered, elapsed_s))

    def at_the_end(self) -> Text:
        """Return the last picture, of the whole spool."""
        return self._picture(self._headline.at_the_end)

    def _picture(self, headline: str) -> Text:
        self._figures.take(self._spool.fresh())
        blocks = PLAIN if self._console.options.ascii_only else BLOCKS
        return picture(headline, self._figures, self._is_scheduled, min(self._console.width, WIDTH), blocks)


class Feed:
    """The content of the window as data for a browser, from the run's folder and settings alone."""

    def __init__(self, settings: RunSettings, folder: Path) -> None:
        self._headline = Headline(settings)
        self._groups = groups(settings.orders_per_s is not None)
        self._spool = GrowingSpool(folder, settings.reporters)
        self._figures = Figures(settings.pairs)
        self._answered = 0

    def has_grown(self) -> bool:
        """Read the spool's new records; return whether one more second is over."""
        before = self._figures.newest
        fresh = list(self._spool.fresh())
        self._answered += sum(record["payload"]["orders_answered"] for record in fresh if record["kind"] == TRAFFIC)
        self._figures.take(fresh)
        return self._figures.newest > before

    def minute(self) -> dict[str, Any]:
        """Return the headline, and for each figure its label and last values; None where nothing was measured."""
        newest = self._figures.newest
        return {
            "headline": self._headline.at(self._answered, newest + 1.0) if newest >= 0 else self._headline.before,
            "second": newest,
            "groups": [
                {
                    "title": title,
                    "rows": [
                        {"label": label, "values": self._figures.minutes[name].until(newest)}
                        for name, label in rows.items()
                        if name in self._figures.minutes
                    ],
                }
                for title, rows in self._groups.items()
            ],
        }


class GrowingSpool:
    """Reads a spool while it grows. A reporter's files appear whole and in order, so the next one's name is known."""

    def __init__(self, run_folder: Path, reporters: int = 1) -> None:
        self._folder = run_folder / "spool"
        self._once = Once()
        self._read = dict.fromkeys(range(1, reporters + 1), 0)

    def fresh(self) -> Iterator[dict[str, Any]]:
        """Yield the records that have appeared since the last call, each once."""
        for reporter in self._read:
            while (path := self._folder / spool_file(self._read[reporter] + 1, reporter)).exists():
                self._read[reporter] += 1
                for line in path.read_bytes().splitlines():
                    if self._once.is_new(line):
                        yield orjson.loads(line)
