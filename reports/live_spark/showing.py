"""What is shown: tables that are drawn anew in a terminal, elsewhere a line for each second once it is final."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live

from reports.live_spark.picture import ending, line, newest
from spark.live.table import Totals

NEWEST = 10
MOST_TABLES = 3
"""What a terminal has room for."""

Row = dict[str, Any]


class Showing:
    """A context; runs are told apart by their folders."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: dict[Path, dict[int, Row]] = {}
        self._said: dict[Path, set[int]] = {}
        self._is_drawn = True
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> Showing:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.update(Group(*self._tables()), refresh=True)
            self._live.stop()

    def rows(self, folder: Path, rows: Iterable[Row]) -> None:
        """Of one run: those that changed, if any did."""
        rows = list(rows)
        self._is_drawn &= not rows
        known = self._rows.setdefault(folder, {})
        known |= {row["second"]: row for row in rows}
        if not self._live:
            self._say_final(folder)
        for second in sorted(known)[:-NEWEST]:
            del known[second]

    def draw(self) -> None:
        """Only where something changed: drawing takes CPU from a run that goes on."""
        if self._live and not self._is_drawn:
            self._is_drawn = True
            self._live.update(Group(*self._tables()), refresh=True)

    def end(self, folder: Path, seconds: int, totals: Totals, is_closed: bool) -> None:
        """Its last picture stays, with a sentence."""
        rows = self._rows.pop(folder, {})
        self._is_drawn = False
        self.draw()
        if self._live and rows:
            self._console.print(newest(folder.name, rows.values()))
        for sentence in ending(folder.name, seconds, totals, is_closed):
            self.say(sentence)

    def say(self, sentence: str) -> None:
        self._console.print(sentence, markup=False, soft_wrap=True)

    def _tables(self) -> list[Group]:
        return [newest(folder.name, rows.values()) for folder, rows in self._rows.items() if rows][-MOST_TABLES:]

    def _say_final(self, folder: Path) -> None:
        said = self._said.setdefault(folder, set())
        for second, row in sorted(self._rows[folder].items()):
            if row["final"] and second not in said:
                said.add(second)
                self.say(line(folder.name, row))
