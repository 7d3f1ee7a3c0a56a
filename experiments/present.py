"""What a run says in the terminal: a bar while it goes on, its result in less than 80 columns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from exchange.settings import RunSettings
from transports.registry import scheme_of

COLUMNS = 78
PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}
CLOCKS = {"handed_over": "completion from handing over", "due": "completion from due time"}


@contextlib.contextmanager
def progress_bar(settings: RunSettings) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, drawn once a second: a livelier one would take CPU from what is measured."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} of {task.total:,.0f} orders"),
        TimeRemainingColumn(), console=Console(stderr=True), auto_refresh=False, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task(scheme_of(settings.transport), total=settings.order_limit)

        def on_second(_sent: int, answered: int) -> None:
            bar.update(task, completed=answered, refresh=True)

        yield on_second


def show_record(record: dict[str, Any]) -> None:
    """Headline, counts, completion time and CPU, from run.json's content."""
    console = Console(width=COLUMNS, highlight=False)
    console.print(_headline(record))
    for reason in record["reasons"]:
        console.print(f"  {reason}", style="bold red")
    console.print(_traffic(record))
    if record["completion_us"]:
        console.print(_completion_table(record))
    console.print(_cpu(record))


def _headline(record: dict[str, Any]) -> str:
    settings, rate = record["settings"], record["settings"]["orders_per_s"]
    offered = "as fast as it goes" if rate is None else f"at {rate:,.10g} orders/s"
    return f"{record['status']}: {settings['transport']} {offered}, seed {settings['seed']}"


def _traffic(record: dict[str, Any]) -> str:
    counts, rates = record["counts"], record["rates"]
    lines = []
    if "orders_sent" in counts:
        lines.append(f"  {_pair(counts, 'orders')}, {_rate(rates, 'orders_per_s')}")
        lines.append(f"  {_pair(counts, 'answers')}, {_rate(rates, 'answers_per_s')}")
    if counts["junk_frames"] or counts["handshakes_refused"]:
        lines.append(f"  turned away: {counts['handshakes_refused']} handshakes, {counts['junk_frames']} junk frames")
    return "\n".join(lines)


def _pair(counts: dict[str, int], kind: str) -> str:
    sent, received = counts.get(f"{kind}_sent"), counts.get(f"{kind}_received")
    if sent == received:
        return f"{sent:,} {kind} sent and received"
    known = [f"{n:,} {kind} {done}" for n, done in ((sent, "sent"), (received, "received")) if n is not None]
    return ", ".join(known)


def _rate(rates: dict[str, float], name: str) -> str:
    return f"{rates[name]:,.0f}/s" if name in rates else "rate not measured"


def _completion_table(record: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("microseconds")
    for title in PERCENTILES.values():
        table.add_column(title, justify="right")
    rows = {**{CLOCKS[clock]: figures for clock, figures in record["completion_us"].items()}}
    if record["lag_us"]:
        rows["lag of the gateway itself"] = record["lag_us"]
    for title, figures in rows.items():
        table.add_row(title, *(f"{figures[name]:,.0f}" for name in PERCENTILES))
    return table


def _cpu(record: dict[str, Any]) -> str:
    components = record["components"]
    used = [f"{role} {usage['cpu_s']:.2f}" for role, usage in components.items()]
    memory = [f"{usage['max_rss_bytes'] / 1e6:.0f}" for usage in components.values()]
    return f"CPU seconds: {', '.join(used)}; peak MB: {', '.join(memory)}"
