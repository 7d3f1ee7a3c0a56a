"""A capacity in the terminal: the evidence rate by rate, then the answer."""

from __future__ import annotations

from itertools import groupby
from statistics import median
from typing import Any

from exchange.words import counted
from reports.tables import FoldingTable, key, plain_table, terminal, words


def show(record: dict[str, Any]) -> None:
    """Print capacity.json's content."""
    console = terminal()
    console.print(_evidence(record["probes"]))
    console.print()
    console.print(headline(record), style="bold", markup=False)
    for flag in record["flags"]:
        console.print(f"[bold red]![/bold red] {flag}")


def headline(record: dict[str, Any]) -> str:
    """zeromq holds p99 <= 1ms up to 61,200 orders/s (59,800..63,900): 5 searches, 27 runs"""
    found, transport = record["capacity_orders_per_s"], record["settings"]["transport"]
    if found is None:
        return f"{transport}: no edge found where {record['objective']} begins to fail"
    interval = "" if found["low"] is None else f" ({found['low']:,.0f}..{found['high']:,.0f})"
    searches = "1 search" if len(record["searches"]) == 1 else f"{len(record['searches'])} searches"
    runs = counted(len(record["probes"]), "runs")
    return f"{transport} holds {record['objective']} up to {found['value']:,.0f} orders/s{interval}: {searches}, {runs}"


def _evidence(probes: list[dict[str, Any]]) -> FoldingTable:
    """A row for each rate."""
    table = plain_table(key("orders/s", from_right=True), "held", "p50 us", "p99 us", "lag p99", words("why not"))
    by_rate = sorted(probes, key=lambda probe: float(probe["orders_per_s"]))
    for rate, group in groupby(by_rate, key=lambda probe: float(probe["orders_per_s"])):
        runs = list(group)
        hold = f"{sum(run['holds'] for run in runs)} of {len(runs)}"
        why = next((run["why"] for run in runs if run["why"]), "")
        figures = (_middle(runs, "completion_us", "due", name) for name in ("p50", "p99"))
        table.add_row(f"{rate:,.0f}", hold, *figures, _middle(runs, "lag_us", "p99"), why)
    return table


def _middle(runs: list[dict[str, Any]], *path: str) -> str:
    """The median of a figure over the runs at a rate."""
    found = [value for run in runs if (value := _value(run, path)) is not None]
    return f"{median(found):,.0f}" if found else "-"


def _value(run: dict[str, Any], path: tuple[str, ...]) -> float | None:
    found: Any = run
    for name in path:
        found = (found or {}).get(name)
    return found
