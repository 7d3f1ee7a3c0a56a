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
from exchange_simulation.reports.live.picture import ASCII_BLOCKS, BLOCKS, WIDTH, Headline, Rows, groups, picture
from exchange_simulation.reports.progress import screen

NS_PER_S = 1_000_000_000


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
    live = Live(window.before_start(), console=console, auto_refresh=False, transient=True, redirect_stdout=False)

    def on_second(moment: Moment) -> None:
        live.transient = False
        live.update(window.during(moment), refresh=True)

    with live:
        yield on_second
        if not live.transient:
            live.update(window.after_end())


class Window:
    """The pictures of one run, from its spool."""

    def __init__(self, settings: RunSettings, console: Console, folder: Path) -> None:
        self._console = console
        self._headline = Headline(settings)
        self._is_scheduled = settings.orders_per_s is not None
        self._spool = GrowingSpool(folder, settings.reporters)
        self._figures = Figures(settings.pairs * settings.gateways)
        self._start_ns: int | None = None

    def before_start(self) -> Text:
        return Text(self._headline.before_start, no_wrap=True, overflow="crop")

    def during(self, moment: Moment) -> Text:
        """Return the picture at the end of a second; the newest second in the picture is the second before."""
        now_ns = time.monotonic_ns()
        if self._start_ns is None:  # the launcher calls for the first time after a second
            self._start_ns = now_ns - NS_PER_S
        elapsed_s = (now_ns - self._start_ns) / NS_PER_S
        if moment.broker_cpu_s is not None:
            usage = {"second": round(elapsed_s) - 1, "cpu_s": moment.broker_cpu_s}
            self._figures.take([{"kind": PROCESS, "source": "broker", "monotonic_ns": now_ns, "payload": usage}])
        return self._picture(self._headline.during(moment.answered, elapsed_s))

    def after_end(self) -> Text:
        """Return the last picture, of the whole spool."""
        return self._picture(self._headline.after_end)

    def _picture(self, headline: str) -> Text:
        self._figures.take(self._spool.new_records())
        blocks = ASCII_BLOCKS if self._console.options.ascii_only else BLOCKS
        width = min(self._console.width, WIDTH)
        return picture(headline, self._figures, self._is_scheduled, width, blocks)


class Feed:
    """The content of the window as data for a browser, from the run's folder and settings alone."""

    def __init__(self, settings: RunSettings, folder: Path) -> None:
        self._headline = Headline(settings)
        self._groups = groups(settings.orders_per_s is not None)
        self._spool = GrowingSpool(folder, settings.reporters)
        self._figures = Figures(settings.pairs * settings.gateways)
        self._answered = 0

    def has_grown(self) -> bool:
        """Read the spool's new records; return whether one more second is over."""
        newest_before = self._figures.newest
        records = list(self._spool.new_records())
        for record in records:
            if record["kind"] == TRAFFIC:
                self._answered += record["payload"]["orders_answered"]
        self._figures.take(records)
        return self._figures.newest > newest_before

    def latest(self) -> dict[str, Any]:
        """Return the headline, and for each figure its label and last values; None where nothing was measured."""
        newest = self._figures.newest
        if newest < 0:
            headline = self._headline.before_start
        else:
            headline = self._headline.during(self._answered, elapsed_s=newest + 1.0)
        groups = [{"title": title, "rows": self._rows(labels)} for title, labels in self._groups.items()]
        return {"headline": headline, "second": newest, "groups": groups}

    def _rows(self, labels: Rows) -> list[dict[str, Any]]:
        """Return the rows of one group; figures without any value have none."""
        rows = []
        for name, label in labels.items():
            if name in self._figures.minutes:
                values = self._figures.minutes[name].until(self._figures.newest)
                rows.append({"label": label, "values": values})
        return rows


class GrowingSpool:
    """Reads a spool while it grows. A reporter's files appear whole and are numbered, so the next name is known."""

    def __init__(self, run_folder: Path, reporters: int = 1) -> None:
        self._folder = run_folder / "spool"
        self._once = Once()
        self._next_file = dict.fromkeys(range(1, reporters + 1), 1)
        """By reporter: the number of the file that is to be read next."""

    def new_records(self) -> Iterator[dict[str, Any]]:
        """Yield the records that have appeared since the last call, each once."""
        for reporter in self._next_file:
            while True:
                path = self._folder / spool_file(self._next_file[reporter], reporter)
                if not path.exists():
                    break
                self._next_file[reporter] += 1
                for line in path.read_bytes().splitlines():
                    if self._once.is_new(line):
                        yield orjson.loads(line)
