"""A simulation's result in the terminal, in less than 80 columns."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from exchange.words import counted
from reports.run.terminal import COLUMNS

TITLES = {"orders": "orders", "trades": "trades", "volume_traded": "lots traded"}


def show(found: dict[str, Any]) -> None:
    """Headline, totals with their spread over instruments, speed, checksums."""
    console = Console(width=COLUMNS, highlight=False)
    settings, rates, sums = found["settings"], found["rates"], found["checksums"]
    instruments = counted(settings["instruments"], "instruments")
    console.print(f"{instruments} of seed {settings['seed']}, {_by(found)}", markup=False)
    console.print(_totals(found))
    console.print(f"{rates['orders_per_s']:,.0f} orders/s: {rates['matching_s']:,.1f} s, "
                  f"after a start-up of {rates['start_up_s']:,.1f} s")  # fmt: skip
    console.print(f"{sums['hash']}: orders {sums['orders']}, answers {sums['answers']}")


def _by(found: dict[str, Any]) -> str:
    parts = counted(found["partitions"], "partitions")
    return f"one process, {parts}" if found["master"] == "none" else f"Spark on {found['master']}, {parts}"


def _totals(found: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("", "total", "an instrument: least", "median", "most"):
        table.add_column(title, justify="right" if title else "left")
    for name, title in TITLES.items():
        of_one = found["per_instrument"][name]
        table.add_row(title, *(f"{n:,.0f}" for n in (found["totals"][name], *of_one.values())))
    return table
