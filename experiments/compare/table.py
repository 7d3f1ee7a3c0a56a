"""A comparison in the terminal: figures by rate and transport, then what can be said of them; 100 columns."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.compare.rounding import rounded, with_interval
from experiments.trials.metrics import COMPONENTS

COLUMNS = 100


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
    table = _table("p50 us from due", "p99 us", "p99.9 us", "achieved/s")
    saturated = any(arm["saturated"] for arm in record["arms"])
    if saturated:
        table.add_column("saturated", justify="right")
    for arm in record["arms"]:
        clock = "due" if "due_p50_us" in arm["metrics"] else "handed_over"
        figures = [with_interval(arm["metrics"].get(f"{clock}_{name}_us")) for name in ("p50", "p99")]
        figures += [rounded(arm["metrics"].get(name)) for name in (f"{clock}_p999_us", "orders_per_s")]
        full = f"{arm['saturated']} of {len(arm['runs'])}" if arm["saturated"] else ""
        table.add_row(*_names(arm), *figures, *([full] if saturated else []))
    return table


def _cpu(record: dict[str, Any]) -> Table:
    """CPU seconds for a million orders, in all and by component."""
    parts = [name for name in COMPONENTS if any(cpu_of(name) in arm["metrics"] for arm in record["arms"])]
    table = _table("CPU s per million orders", *parts)
    for arm in record["arms"]:
        all_of_it = with_interval(arm["metrics"].get("cpu_s_per_million"))
        table.add_row(*_names(arm), all_of_it, *(rounded(arm["metrics"].get(cpu_of(part))) for part in parts))
    return table


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("orders/s", justify="right")
    table.add_column("")
    for title in titles:
        table.add_column(title, justify="right")
    return table


def _names(arm: dict[str, Any]) -> tuple[str, str]:
    rate = arm["settings"]["orders_per_s"]
    return ("max" if rate is None else f"{rate:,.10g}"), arm["contender"]


def cpu_of(component: str) -> str:
    """The metric's name."""
    return f"{component}_cpu_s_per_million"
