"""The newest seconds of a run: as a table, or each as a line; and what is said at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from exchange.words import counted
from spark.live.table import Totals

Row = Mapping[str, Any]

COLUMNS = {
    "second": ("second", "{:,}"),
    "orders/s": ("orders_per_s", "{:,.0f}"),
    "answered": ("orders_answered", "{:,}"),
    "p50 us": ("{clock}_p50_us", "{:,.0f}"),
    "p99 us": ("{clock}_p99_us", "{:,.0f}"),
    "max us": ("{clock}_max_us", "{:,.0f}"),
    "lag p99": ("lag_p99_us", "{:,.0f}"),
    "gateway": ("gateway_cpu_cores", "{:.2f}"),
    "engine": ("engine_cpu_cores", "{:.2f}"),
}
"""The title here, the column in the live table, how it is written. The last two are cores in use."""


def newest(name: str, rows: Iterable[Row]) -> Group:
    """These seconds, newest last; one that more may come of is dim."""
    shown = sorted(rows, key=lambda row: row["second"])
    clock = clock_of(shown)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for title in COLUMNS:
        table.add_column(title, justify="right", no_wrap=True)
    for row in shown:
        table.add_row(*cells(row, clock), style="" if row["final"] else "dim")
    return Group(Text(f"{name}, us from {clock.replace('_', ' ').replace('handed', 'handing')}"), table)


def clock_of(rows: Iterable[Row]) -> str:
    """Without a schedule nothing is due."""
    return "due" if any(row["due_count"] for row in rows) else "handed_over"


def cells(row: Row, clock: str) -> Iterator[str]:
    for column, form in COLUMNS.values():
        value = row[column.format(clock=clock)]
        yield "-" if value is None else form.format(value)


def line(name: str, row: Row) -> str:
    """One second, where there is no terminal to draw in."""
    clock = clock_of([row])
    told = [f"{title} {cell}" for title, cell in zip(COLUMNS, cells(row, clock), strict=True)]
    return f"{name}: {', '.join(told)}"


def ending(name: str, seconds: int, totals: Totals, is_closed: bool) -> list[str]:
    """What the table holds, and what it does not."""
    figures = f"{counted(seconds, 'seconds')}, {counted(totals.records, 'records')}, {totals.late:,} of them late"
    still = "" if is_closed else "; the closing record has not come"
    sentences = [
        f"{name}: {figures}; {totals.duplicates:,} said twice, {counted(totals.unread, 'lines')} unread{still}"
    ]
    for problem, (lines, example) in totals.problems.items():
        sentences.append(f"  unread: {counted(lines, 'lines')}, {problem}, as: {example}")
    return sentences
