"""A capacity in the terminal: the answer, what a reader must know, then the probes by rate."""

from __future__ import annotations

from itertools import groupby
from statistics import median
from typing import Any

from rich.text import Text

from reports.capacity.sentences import METHOD, headline, percent
from reports.tables import FoldingTable, key, plain_table, terminal, words


def show(record: dict[str, Any]) -> None:
    """Print capacity.json's content."""
    console = terminal()
    console.print(headline(record), style="bold", markup=False)
    for flag in record["flags"]:
        console.print(Text.assemble(("!", "bold red"), f" {flag}"))
    if record.get("answer"):
        console.print(METHOD, style="dim")
    console.print()
    console.print(_evidence(record["probes"]))


def _evidence(probes: list[dict[str, Any]]) -> FoldingTable:
    """A row for each rate."""
    table = plain_table(
        key("orders/s", from_right=True), "held", "p50 us", "p99 us", "lag p99", "noise", words("why not")
    )
    by_rate = sorted(probes, key=lambda probe: float(probe["orders_per_s"]))
    for rate, group in groupby(by_rate, key=lambda probe: float(probe["orders_per_s"])):
        runs = list(group)
        hold = f"{sum(run['holds'] for run in runs)} of {len(runs)}"
        why = next((run["why"] for run in runs if run["why"]), "")
        figures = (_middle(runs, "completion_us", "due", name) for name in ("p50", "p99"))
        table.add_row(f"{rate:,.0f}", hold, *figures, _middle(runs, "lag_us", "p99"), _noise(runs), why)
    return table


def _noise(runs: list[dict[str, Any]]) -> str:
    """The largest share of the processors that others took beside a run at this rate."""
    shares = [share for run in runs if (share := run.get("noise_share")) is not None]
    return percent(max(shares)) if shares else "-"


def _middle(runs: list[dict[str, Any]], *path: str) -> str:
    """The median of a figure over the runs at a rate."""
    found = [value for run in runs if (value := _value(run, path)) is not None]
    return f"{median(found):,.0f}" if found else "-"


def _value(run: dict[str, Any], path: tuple[str, ...]) -> float | None:
    found: Any = run
    for name in path:
        found = (found or {}).get(name)
    return found
