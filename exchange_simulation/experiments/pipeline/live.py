"""`exchange spark live`: follows the runs of a folder until each has ended.

RESULTS ──every second: new runs──▶ a query for each run ──changed rows──▶ terminal
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import click
from pyspark.sql import SparkSession

from exchange_simulation.launching.component import Events
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import runs_begun, runs_begun_or_beginning
from exchange_simulation.launching.interrupts import ended_as_by_ctrl_c, on_signals
from exchange_simulation.reports.live.spark_table import SecondsOnScreen
from exchange_simulation.reports.progress import screen
from spark.errors import SparkError
from spark.live.query import FollowedRun
from spark.sessions.java import find_java
from spark.sessions.session import open_session
from spark.warm_up import warm

LOOK_S = 0.2
"""The time between two looks at the queries."""
FIND_RUNS_S = 1.0
"""The time between two searches for new runs."""
CTRL_C_EXIT_CODE = 130
"""The exit code that shells give a command ended by SIGINT."""


class OpenRun(NamedTuple):
    """A run that is followed, and the resources to close at its end."""

    run: FollowedRun
    resources: ExitStack


class RunsFollower:
    """Follows the runs of one folder until they end; with `once`, reads only their present files."""

    def __init__(self, spark: SparkSession, results: Path, once: bool, on_screen: SecondsOnScreen) -> None:
        self._spark = spark
        self._results = results
        self._once = once
        self._screen = on_screen
        self._known: set[Path] = set()
        """The folders of all runs that were followed so far."""
        self._open: dict[Path, OpenRun] = {}
        """The runs that are followed now, by folder."""
        self._last_search_s = float("-inf")
        """The time of the last search for new runs, by the monotonic clock."""
        self.has_failed = False
        """True once a query failed."""

    def follow_to_end(self) -> None:
        """Follow until all runs of the folder are over."""
        while True:
            self._follow_new_runs()
            for folder in list(self._open):
                self._show_news(folder)
            self._screen.draw()
            if not self._open and (self._once or self._is_over()):
                break
            time.sleep(LOOK_S)

    def close(self) -> None:
        """Stop, even in the middle of a batch. A later `exchange spark live` reads the batch again."""
        for folder in list(self._open):
            self._end(folder)

    def _is_over(self) -> bool:
        """Return True if every run of the folder was followed, also runs that have a folder but have not begun yet."""
        return bool(self._known) and self._known.issuperset(runs_begun_or_beginning(self._results))

    def _follow_new_runs(self) -> None:
        """Begin to follow the runs that have begun since the last search, if FIND_RUNS_S have passed since then."""
        if time.monotonic() - self._last_search_s < FIND_RUNS_S:
            return
        self._last_search_s = time.monotonic()
        for folder in runs_begun(self._results):
            if folder not in self._known:
                self._known.add(folder)
                self._begin(folder)

    def _begin(self, folder: Path) -> None:
        """Begin to follow a run. If the run is over already, read it to its end at once, before the next run."""
        with ExitStack() as resources:
            try:
                run = resources.enter_context(FollowedRun(self._spark, folder))
            except SparkError as error:
                self._fail(error)
                return
            self._open[folder] = OpenRun(run, resources.pop_all())
        self._show_news(folder)

    def _show_news(self, folder: Path) -> None:
        """Show the seconds of a run that are new or have changed. If the run is over, or its query failed, end it."""
        run = self._open[folder].run
        try:
            self._screen.take_rows(folder, run.changed())
            if self._once or run.is_closed:
                run.catch_up()
                self._screen.take_rows(folder, run.changed())
                self._end(folder)
        except SparkError as error:
            self._fail(error)
            with suppress(SparkError):  # the query is dead, and its error was shown
                self._end(folder)

    def _end(self, folder: Path) -> None:
        """Show the run's totals, and end its query."""
        open_run = self._open.pop(folder)
        run = open_run.run
        self._screen.end(folder, run.seconds, run.totals, run.is_closed)
        open_run.resources.close()

    def _fail(self, error: SparkError) -> None:
        """Note that a query failed, and show the error."""
        self.has_failed = True
        self._screen.say(str(error))


def follow(results: Path, once: bool, launched: bool, settings: Mapping[str, str]) -> int:
    """Follow the runs, and return the exit code.

    If `launched`, this process belongs to a run, which waits for the event `ready` before its clock starts.
    """
    if once and not any(runs_begun(results)):
        raise UserError(f"{results} holds no run that has begun: give a run's folder, or one that holds runs")
    try:
        with ended_as_by_ctrl_c(), _session(launched, settings) as spark, SecondsOnScreen(screen()) as on_screen:
            runs_follower = RunsFollower(spark, results, once, on_screen)
            if launched:
                warm(spark)
                Events("spark", launched=True).say("ready")
            elif not any(runs_begun(results)) and not once:
                on_screen.say(f"{results} holds no run that has begun: waiting for one")
            _follow_until_ctrl_c(runs_follower)
    except SparkError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        return CTRL_C_EXIT_CODE
    return 1 if runs_follower.has_failed else 0


@contextmanager
def _session(launched: bool, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a session of Spark in which Ctrl-C raises KeyboardInterrupt."""
    java = find_java()
    if java.note and not launched:
        click.echo(java.note, err=True)
    # Without a handler, py4j prints a traceback if the JVM was killed.
    logging.getLogger().addHandler(logging.NullHandler())
    with open_session(java=java, settings=settings) as spark:
        # pyspark's own handler would cancel a batch in the middle of its work.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield spark


def _follow_until_ctrl_c(runs_follower: RunsFollower) -> None:
    """Follow until all runs are over. After Ctrl-C, end the queries, ignore further signals, and raise again."""
    try:
        runs_follower.follow_to_end()
    except KeyboardInterrupt:
        on_signals((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), lambda *_: None)
        with suppress(SparkError):
            runs_follower.close()
        raise
