"""A capacity in the terminal: the answer, what a reader must know, then the probes by rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import Any

from rich.text import Text

from exchange.load_axis import LoadAxis
from reports.capacity.sentences import headline, method, percent
from reports.formats import ABSENT, number, whole
from reports.tables import FoldingTable, key, plain_table, terminal, words

Columns = Mapping[str, Sequence[str]]
"""Titles, with the place of each figure in a probe."""
COLUMNS: Columns = {
    "p50 us": ("completion_us", "due", "p50"), "p99 us": ("completion_us", "due", "p99"), "lag p99": ("lag_us", "p99"),
}  # fmt: skip


def show(record: dict[str, Any]) -> None:
    """Print capacity.json's content."""
    console = terminal()
    console.print(headline(record), style="bold", markup=False)
    for flag in record["flags"]:
        console.print(Text.assemble(("!", "bold red"), f" {flag}"))
    if record.get("answer"):
        console.print(method(record), style="dim")
    console.print()
    console.print(_evidence(record))


def columns_of(record: dict[str, Any]) -> Columns:
    """A benchmark's own columns, or the exchange's."""
    return {title: ("figures", name) for title, name in record["columns"].items()} if "columns" in record else COLUMNS


def _evidence(record: dict[str, Any]) -> FoldingTable:
    """A row for each rate."""
    axis, columns = LoadAxis.of(record), columns_of(record)
    table = plain_table(key(axis.unit, from_right=True), "held", *columns, "noise", words("why not"))
    by_rate = sorted(record["probes"], key=lambda probe: float(probe[axis.name]))
    for rate, group in groupby(by_rate, key=lambda probe: float(probe[axis.name])):
        runs = list(group)
        hold = f"{sum(run['holds'] for run in runs)} of {len(runs)}"
        why = next((run["why"] for run in runs if run["why"]), "")
        in_words = whole if columns is COLUMNS else number
        figures = (
            in_words(value) if (value := _middle(runs, path)) is not None else ABSENT for path in columns.values()
        )
        table.add_row(f"{rate:,.0f}", hold, *figures, _noise(runs), why)
    return table


def _noise(runs: list[dict[str, Any]]) -> str:
    """The largest share of the processors that others took beside a run at this rate."""
    shares = [share for run in runs if (share := run.get("noise_share")) is not None]
    return percent(max(shares)) if shares else "-"


def _middle(runs: list[dict[str, Any]], path: Sequence[str]) -> float | None:
    """The median of a figure over the runs at a rate."""
    found = [value for run in runs if (value := value_of(run, path)) is not None]
    return median(found) if found else None


def value_of(run: dict[str, Any], path: Sequence[str]) -> float | None:
    """The figure of a probe that its column shows."""
    found: Any = run
    for name in path:
        found = (found or {}).get(name)
    return found
