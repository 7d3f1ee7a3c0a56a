"""The seconds of runs that Spark follows: tables that are redrawn in a terminal, elsewhere a line for each second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from exchange.second_columns import COLUMNS
from exchange.words import counted
from exchange_simulation.reports.formats.seconds import second_cells
from exchange_simulation.reports.tables import key_column, plain_table
from spark.live.table import Totals

FOLLOWED = [column for column in COLUMNS if column.followed_title]
"""The columns of a table, behind the second's number."""
TITLES = ["second", *(column.followed_title for column in FOLLOWED)]
SECONDS_SHOWN = 10
"""The most seconds of a run that a terminal shows: the newest ones."""
RUNS_SHOWN = 3
"""The most runs that a terminal shows: those that appeared last."""

CLOCK_WORDS = {"due": "due", "handed_over": "handing over"}

Row = Mapping[str, Any]


class SecondsOnScreen:
    """A context that shows the newest seconds of each run; runs are told apart by their folders."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: dict[Path, dict[int, Row]] = {}
        """By folder and second."""
        self._printed: dict[Path, set[int]] = {}
        """Outside a terminal: the seconds that were printed."""
        self._is_drawn = True
        """False if a row has changed since the last drawing."""
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> SecondsOnScreen:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.update(Group(*self._tables()), refresh=True)
            self._live.stop()

    def take_rows(self, folder: Path, rows: Iterable[Row]) -> None:
        """Take the rows of a run that changed, if any did; outside a terminal, print those that became final."""
        rows_of_run = self._rows.setdefault(folder, {})
        for row in rows:
            rows_of_run[row["second"]] = row
            self._is_drawn = False
        if not self._live:
            self._print_final(folder)
        seconds_no_longer_shown = sorted(rows_of_run)[:-SECONDS_SHOWN]
        for second in seconds_no_longer_shown:
            del rows_of_run[second]

    def draw(self) -> None:
        """Redraw if anything changed: drawing takes CPU from a run that goes on."""
        if self._live and not self._is_drawn:
            self._is_drawn = True
            self._live.update(Group(*self._tables()), refresh=True)

    def end(self, folder: Path, seconds: int, totals: Totals, is_closed: bool) -> None:
        """Leave the last picture of a run on the screen, with its totals."""
        rows = self._rows.pop(folder, {})
        self._is_drawn = False
        self.draw()
        if self._live and rows:
            self._console.print(seconds_table(folder.name, rows.values()))
        for sentence in closing_sentences(folder.name, seconds, totals, is_closed):
            self.say(sentence)

    def say(self, sentence: str) -> None:
        self._console.print(sentence, markup=False, soft_wrap=True)

    def _tables(self) -> list[Group]:
        tables = [seconds_table(folder.name, rows.values()) for folder, rows in self._rows.items() if rows]
        return tables[-RUNS_SHOWN:]

    def _print_final(self, folder: Path) -> None:
        printed = self._printed.setdefault(folder, set())
        for second, row in sorted(self._rows[folder].items()):
            if row["final"] and second not in printed:
                printed.add(second)
                self.say(second_line(folder.name, row))


def seconds_table(name: str, rows: Iterable[Row]) -> Group:
    """Return a table of these seconds, newest last; a second that is not final is dim."""
    in_order = sorted(rows, key=lambda row: row["second"])
    clock = clock_of(in_order)
    table = plain_table(key_column("second", from_right=True), *(column.followed_title for column in FOLLOWED), gap=1)
    for row in in_order:
        table.add_row(*second_cells(row, FOLLOWED, clock), style="" if row["final"] else "dim")
    return Group(Text(f"{name}, us from {CLOCK_WORDS[clock]}"), table)


def clock_of(rows: Iterable[Row]) -> str:
    """Return the clock of the completion times: due, or handed_over if no order had a due time."""
    return "due" if any(row["due_count"] for row in rows) else "handed_over"


def second_line(name: str, row: Row) -> str:
    """Return a second in one line, for output that is no terminal."""
    cells = second_cells(row, FOLLOWED, clock_of([row]))
    figures = [f"{title} {cell}" for title, cell in zip(TITLES, cells, strict=True)]
    return f"{name}: {', '.join(figures)}"


def closing_sentences(name: str, seconds: int, totals: Totals, is_closed: bool) -> list[str]:
    """Return the closing sentences of a run: its totals, then the lines that could not be read."""
    figures = f"{counted(seconds, 'seconds')}, {counted(totals.records, 'records')}, {totals.late:,} of them late"
    missing_end = "" if is_closed else "; the closing record has not come"
    sentences = [
        f"{name}: {figures}; {totals.duplicates:,} said twice, {counted(totals.unread, 'lines')} unread{missing_end}"
    ]
    for problem, (lines, example) in totals.problems.items():
        sentences.append(f"  unread: {counted(lines, 'lines')}, {problem}, as: {example}")
    return sentences
