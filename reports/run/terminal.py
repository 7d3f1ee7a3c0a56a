"""A run's result in the terminal, in less than 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from exchange.words import counted, each_of, noun

COLUMNS = 78
PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}
CLOCKS = {"handed_over": "completion from handing over", "due": "completion from due time"}


def show_record(record: dict[str, Any]) -> None:
    """Headline, counts, completion time and CPU, from run.json's content."""
    console = Console(width=COLUMNS, highlight=False)
    console.print(_headline(record), markup=False)
    for reason in record["reasons"]:
        console.print(f"  {reason}", style="bold red", markup=False)
    for flag in record.get("network", {}).get("flags", ()):
        console.print(f"  the network: {flag}", style="bold red", markup=False)
    for line in _traffic(record):
        console.print(f"  {line}")
    if record.get("completion_us"):
        console.print(_completion_table(record))
    if len(record.get("pairs", ())) > 1:
        console.print(_pairs_table(record["pairs"]))
    if record.get("components"):
        console.print(_cpu(record["components"]))
    if record.get("capture"):
        from reports.run.capture import show_capture

        show_capture(record)


def _headline(record: dict[str, Any]) -> str:
    settings = record.get("settings", {})
    if "orders_per_s" not in settings:
        return f"{record['status']}: {record['name']}, settings unknown"
    who = settings["transport"] + each_of(settings.get("pairs", 1))
    return f"{record['status']}: {who} {_offered(settings)}, {_origin(settings)}"


def _offered(settings: dict[str, Any]) -> str:
    rate, arrivals = settings["orders_per_s"], settings.get("arrivals", "fixed")
    if rate is None:
        return "as fast as it goes"
    if arrivals == "recorded":
        return f"as recorded, speed {settings['speed']:g}"
    return f"at {rate:,.10g} orders/s" + ("" if arrivals == "fixed" else f", {arrivals}")


def _origin(settings: dict[str, Any]) -> str:
    tape = settings.get("tape")
    return f"tape {tape}" if tape else f"seed {settings['seed']}"


def _traffic(record: dict[str, Any]) -> Iterator[str]:
    counts, rates, sums = (record.get(part, {}) for part in ("counts", "rates", "checksums"))
    if "orders_sent" in counts:
        yield f"{_pair(counts, 'orders')}, {_rate(rates, 'orders_per_s')}"
        yield f"{_pair(counts, 'answers')}, {_rate(rates, 'answers_per_s')}"
        summed = "sum of " if len(record.get("pairs", ())) > 1 else ""
        yield f"{summed}{sums['hash']}: orders {sums['orders']}, answers {sums['answers']}"
        if not record["completion_us"] and record["settings"].get("warm_up_s"):
            yield f"nothing is left to analyse after a warm-up of {record['settings']['warm_up_s']:g} s"
    refused, junk = counts.get("handshakes_refused"), counts.get("junk_frames")
    if refused or junk:
        yield f"turned away: {counted(refused or 0, 'handshakes')}, {counted(junk or 0, 'junk frames')}"


def _pair(counts: dict[str, int], kind: str) -> str:
    sent, received = counts.get(f"{kind}_sent"), counts.get(f"{kind}_received")
    if sent is not None and sent == received:
        return f"{counted(sent, kind)} sent and received"
    known = [f"{n:,} {noun(n, kind)} {done}" for n, done in ((sent, "sent"), (received, "received")) if n is not None]
    return ", ".join(known)


def _rate(rates: dict[str, float], name: str) -> str:
    return f"{rates[name]:,.0f}/s" if name in rates else "rate not measured"


def _completion_table(record: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("microseconds")
    for title in PERCENTILES.values():
        table.add_column(title, justify="right")
    rows = {**{CLOCKS[clock]: figures for clock, figures in record["completion_us"].items()}}
    if record.get("lag_us"):
        rows["lag of the gateway itself"] = record["lag_us"]
    for title, figures in rows.items():
        table.add_row(title, *(f"{figures[name]:,.0f}" for name in PERCENTILES))
    return table


def _pairs_table(pairs: list[dict[str, Any]]) -> Table:
    """Completion times are those from due time, where there was one."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("pair", "status", "orders/s", "p50", "p99", "max"):
        table.add_column(title, justify="left" if title == "status" else "right")
    for pair in pairs:
        times = pair["completion_us"].get("due") or pair["completion_us"].get("handed_over") or {}
        measured = [pair["rates"].get("orders_per_s"), *(times.get(name) for name in ("p50", "p99", "max"))]
        figures = ["-" if value is None else f"{value:,.0f}" for value in measured]
        table.add_row(str(pair["pair"]), pair["status"], *figures)
    return table


def _cpu(components: dict[str, dict[str, Any]]) -> str:
    used = [f"{role} {usage['cpu_s']:.2f}" for role, usage in components.items()]
    memory = [f"{usage['max_rss_bytes'] / 1e6:.0f}" for usage in components.values()]
    return f"CPU seconds: {', '.join(used)}; peak MB: {', '.join(memory)}"
