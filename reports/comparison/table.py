"""A comparison in the terminal: figures by rate and transport, then what can be said of them; 80 columns."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from reports.comparison.naming import rate_and_name
from reports.rounding import rounded, with_interval
from runs.metrics import COMPONENTS

COLUMNS = 80


def show(record: dict[str, Any]) -> None:
    """From comparison.json's content."""
    console = Console(width=COLUMNS, highlight=False)
    console.print()
    console.print(_completion(record))
    console.print()
    console.print(_cpu(record))
    show_verdicts(console, record)
    show_caveats(console, record)


def show_verdicts(console: Console, record: dict[str, Any]) -> None:
    """What can be said, metric by metric."""
    for metric in dict.fromkeys(verdict["metric"] for verdict in record["verdicts"]):
        console.print(f"\n[bold]{record['metrics'][metric]['title']}[/bold]")
        for verdict in record["verdicts"]:
            if verdict["metric"] == metric:
                _say(console, verdict)


def show_caveats(console: Console, record: dict[str, Any]) -> None:
    for caveat in record["caveats"]:
        console.print(f"[bold red]![/bold red] {caveat}")


def _say(console: Console, verdict: dict[str, Any]) -> None:
    style = "bold" if verdict["outcome"] == "differ" else ""
    row = Table.grid(padding=(0, 2, 0, 0))
    row.add_column(min_width=22, justify="right")
    row.add_column(style=style)
    row.add_row(verdict["block"], verdict["sentence"])
    console.print(row)


def _completion(record: dict[str, Any]) -> Table:
    """Medians over repeats; in brackets their 95 % intervals."""
    table = _table("p50 us from due", "p99 us", "achieved/s")
    saturated = any(arm["saturated"] for arm in record["arms"])
    if saturated:
        table.add_column("saturated", justify="right", no_wrap=True)
    for arm in record["arms"]:
        clock = "due" if "due_p50_us" in arm["metrics"] else "handed_over"
        figures = [with_interval(arm["metrics"].get(f"{clock}_{name}_us")) for name in ("p50", "p99")]
        full = f"{arm['saturated']} of {len(arm['runs'])}" if arm["saturated"] else ""
        achieved = rounded(arm["metrics"].get("orders_per_s"))
        table.add_row(*rate_and_name(arm), *figures, achieved, *([full] if saturated else []))
    return table


def _cpu(record: dict[str, Any]) -> Table:
    """CPU seconds for a million orders, in all and by component."""
    parts = [name for name in COMPONENTS if any(cpu_of(name) in arm["metrics"] for arm in record["arms"])]
    table = _table("CPU s per million", *parts)
    for arm in record["arms"]:
        all_of_it = with_interval(arm["metrics"].get("cpu_s_per_million"))
        table.add_row(*rate_and_name(arm), all_of_it, *(rounded(arm["metrics"].get(cpu_of(part))) for part in parts))
    return table


def _table(*titles: str) -> Table:
    """Of all columns only the contender's name may take several lines."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("orders/s", justify="right", no_wrap=True)
    table.add_column("")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def cpu_of(component: str) -> str:
    """The metric's name."""
    return f"{component}_cpu_s_per_million"
