"""A simulation in the terminal."""

from __future__ import annotations

from typing import Any

from exchange.words import counted
from reports.tables import FoldingTable, key, plain_table, terminal

TITLES = {"orders": "orders", "trades": "trades", "volume_traded": "lots traded"}


def show(record: dict[str, Any]) -> None:
    """Print simulation.json's content: headline, totals with their spread over instruments, speed, checksums."""
    console = terminal()
    settings, rates, sums = record["settings"], record["rates"], record["checksums"]
    instruments = counted(settings["instruments"], "instruments")
    console.print(f"{instruments} of seed {settings['seed']}, {_by(record)}", markup=False)
    console.print(_totals(record))
    console.print(f"{rates['orders_per_s']:,.0f} orders/s: {rates['matching_s']:,.1f} s, "
                  f"after a start-up of {rates['start_up_s']:,.1f} s")  # fmt: skip
    console.print(f"{sums['hash']}: orders {sums['orders']}, answers {sums['answers']}")


def _by(record: dict[str, Any]) -> str:
    parts = counted(record["partitions"], "partitions")
    return f"one process, {parts}" if record["master"] == "none" else f"Spark on {record['master']}, {parts}"


def _totals(record: dict[str, Any]) -> FoldingTable:
    table = plain_table(key(), "total", "an instrument: least", "median", "most")
    for name, title in TITLES.items():
        spread = record["per_instrument"][name].values()
        table.add_row(title, *(f"{n:,.0f}" for n in (record["totals"][name], *spread)))
    return table
