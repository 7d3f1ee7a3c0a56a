"""The outcome in the terminal: completion time, table 1 of the paper, and a sentence a rate; 100 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from reports.comparison.paper import FIGURES_8, TABLE_1
from reports.comparison.table import show_caveats, show_verdicts
from reports.rounding import number, rounded, with_interval

COLUMNS = 100
COMPLETION = {"mean": "due_mean_us", "p50": "due_p50_us", "p99": "due_p99_us", "max": "due_max_us"}
PACKETS = {"packets an order": "packets_per_order", "mean bytes": "packet_bytes", "mean gap us": "packet_gap_us"}
WITH_INTERVAL = {"due_mean_us", "due_p50_us", "packets_per_order"}


def show(record: dict[str, Any]) -> None:
    """From comparison.json's content."""
    console = Console(width=COLUMNS, highlight=False)
    console.print("\n[bold]completion time from due, us[/bold]")
    console.print(_table(record, COMPLETION))
    console.print(f"[dim]{FIGURES_8}[/dim]")
    console.print("\n[bold]packets between gateway and engine, or to and from the broker (table 1)[/bold]")
    packets = _table(record, PACKETS)
    for row in TABLE_1:
        figures = (number(row.per_order), f"{row.mean_bytes}", f"{row.mean_gap_us}")
        packets.add_row(f"{row.orders_per_s:,}", "the paper's", f"Nagle {row.nagle}", *figures, style="dim")
    console.print(packets)
    show_verdicts(console, record)
    show_caveats(console, record)


def _table(record: dict[str, Any], columns: dict[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("orders/s", "", "", *columns):
        table.add_column(title, justify="left" if not title else "right")
    for arm in record["arms"]:
        table.add_row(*_names(arm), *_figures(arm, list(columns.values())))
    return table


def _names(arm: dict[str, Any]) -> tuple[str, str, str]:
    rate = arm["settings"]["orders_per_s"]
    return ("max" if rate is None else f"{rate:,.10g}"), arm["settings"]["transport"], arm["contender"]


def _figures(arm: dict[str, Any], metrics: Sequence[str]) -> list[str]:
    found = [(name in WITH_INTERVAL, arm["metrics"].get(name)) for name in metrics]
    return [(with_interval if interval else rounded)(estimate) for interval, estimate in found]
