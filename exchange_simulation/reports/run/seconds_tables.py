"""The table of a run's seconds, on its page and in the terminal; exchange/second_columns.py declares the columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exchange.second_columns import COLUMNS, SecondColumn, Unit
from exchange_simulation.reports.formats.few_orders import maximum_instead
from exchange_simulation.reports.formats.numbers import number_text
from exchange_simulation.reports.formats.seconds import SECOND_FORMATS, second_cells
from exchange_simulation.reports.run.run_folder import RunFolder, has_rates_per_s, is_scheduled
from exchange_simulation.reports.run.seconds import Row, RunSeconds
from exchange_simulation.reports.run.steps import show_steps
from exchange_simulation.reports.tables import FoldingTable, key_column, plain_table, terminal

CLOCK_WORDS = {"due": "due", "handed_over": "handover"}
MOST_IN_TERMINAL = 12
MOST_BELOW_STEPS = 6
"""The most rows in the terminal below a table of steps, which says more in fewer rows."""
MOST_ON_A_PAGE = 100


@dataclass(frozen=True)
class SecondsTable:
    """The table of a page; a row of None stands for seconds that are left out."""

    columns: list[str]
    rows: list[tuple[int, list[str]] | None]


def seconds_table(folder: RunFolder) -> SecondsTable:
    """Return the page's table: a row for every second, or for the first and the last ones of a long run."""
    columns = _columns_of(folder, lambda column: column.page_title)
    clock = _clock(folder)
    rows: list[tuple[int, list[str]] | None] = []
    for row in RunSeconds(folder).table_rows(MOST_ON_A_PAGE):
        if row is None:
            rows.append(None)
        else:
            rows.append((row["second"], [_cell(row, column, clock) for column in columns]))
    return SecondsTable([column.page_title for column in columns], rows)


def show_seconds(folder: RunFolder) -> None:
    """Print a row for each step of a load over time; then one for every second, or for the first and the last few."""
    has_steps = show_steps(folder)
    seconds = RunSeconds(folder)
    if seconds.numbers:
        most = MOST_BELOW_STEPS if has_steps else MOST_IN_TERMINAL
        terminal().print(_terminal_table(folder, seconds, most))


def _terminal_table(folder: RunFolder, seconds: RunSeconds, most: int) -> FoldingTable:
    columns = _columns_of(folder, lambda column: column.terminal_title)
    clock = _clock(folder)
    headings = [column.terminal_title.format(clock=CLOCK_WORDS[clock]) for column in columns]
    table = plain_table(key_column("second", from_right=True), *headings, gap=1)
    for row in seconds.table_rows(most):
        if row is None:
            table.add_row(*["..."] * (1 + len(columns)))
        else:
            table.add_row(*second_cells(row, columns, clock))
    return table


def _columns_of(folder: RunFolder, title: Callable[[SecondColumn], str]) -> list[SecondColumn]:
    """Return the columns with a title that this run has.

    A run without a schedule lacks the columns that need one; a run of less than a second has no rates.
    """
    columns = []
    for column in COLUMNS:
        if not title(column):
            continue
        if column.needs_schedule and not is_scheduled(folder.run):
            continue
        if column.unit is Unit.RATE and not has_rates_per_s(folder):
            continue
        columns.append(column)
    return columns


def _clock(folder: RunFolder) -> str:
    return "due" if is_scheduled(folder.run) else "handed_over"


def _cell(row: Row, column: SecondColumn, clock: str) -> str:
    """Return a figure as the page has it; empty if it was not measured."""
    figure = column.figure.format(clock=clock)
    value = row.get(figure)
    if value is None:
        return ""
    if column.unit in SECOND_FORMATS:
        return SECOND_FORMATS[column.unit].format(value)
    return maximum_instead(row, figure) or number_text(value)
