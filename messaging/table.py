"""The outcome in the terminal: a row for each cell, medians with their intervals; CPU; then what was wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from exchange.words import counted
from messaging.benchmark import Column
from messaging.catalogue import benchmark_of
from messaging.words import reasons_in_words, short, short_interval, titles_of, values_in_words
from reports.rounding import ABSENT, number

COLUMNS = 120
CPU = {"cores in use": "_cores", "context switches a message": "_switches_per_message"}
Rows = Sequence[dict[str, Any]]


def show(record: Mapping[str, Any]) -> None:
    """From bench.json's content; a suite's are several."""
    for part in record.get("parts", [record]):
        _show(part)


def _show(record: Mapping[str, Any]) -> None:
    console = Console(width=COLUMNS, highlight=False)
    benchmark, rows = benchmark_of(record["benchmark"]), record["rows"]
    console.print(f"\n[bold]{benchmark.name}[/bold]: {benchmark.about}")
    console.print(_table(rows, columns_with_something(rows, benchmark.columns)))
    for title, columns in cpu_columns(rows).items():
        console.print(f"\n{title}")
        console.print(_table(rows, columns))
    for sentence in benchmark.in_short(rows):
        console.print(sentence)
    repeats = counted(record["settings"]["repeats"], "repeats")
    console.print(f"[dim]{benchmark.paper}; medians of {repeats}[/dim]")
    for published in benchmark.published:
        console.print(f"[dim]the paper, on other hardware: {published.what}: {published.value}[/dim]")
    for reason in record.get("left_out", ()):
        console.print(f"left out, {reason}")
    for reason in reasons_in_words(record["reasons"]):
        console.print(f"[bold red]{record['status']}[/bold red]: {reason}")


def _table(rows: Rows, columns: Sequence[Column]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in titles_of(rows):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(column.title, justify="right", no_wrap=True)
    for row in rows:
        cells = [_in_words(column, row["figures"].get(column.name)) for column in columns]
        table.add_row(*values_in_words(row["point"]), row["transport"], *cells)
    return table


def _in_words(column: Column, estimate: Mapping[str, Any] | None) -> str:
    """3.07 M (1.42 M..5.83 M)"""
    if estimate is None:
        return ABSENT
    value = number(estimate["median"]) if column.exact else short(estimate["median"])
    return f"{value} {short_interval(estimate)}".rstrip() if column.with_interval else value


def columns_with_something(rows: Rows, columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if any(column.name in row["figures"] for row in rows)]


def cpu_columns(rows: Rows) -> dict[str, list[Column]]:
    """Of the broker and each kind of role, by what is counted."""
    names = dict.fromkeys(name for row in rows for name in row["figures"])
    return {
        title: [Column(name, name.removesuffix(ending)) for name in names if name.endswith(ending)]
        for title, ending in CPU.items()
    }
