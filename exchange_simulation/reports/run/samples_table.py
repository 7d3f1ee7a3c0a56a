"""The tables that Spark makes of a run's sampled completion times, in the terminal; spark/samples.py says how."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pyarrow.parquet

from exchange.words import counted, printable
from exchange_simulation.reports.formats.numbers import ABSENT, number_text
from exchange_simulation.reports.run.run_folder import is_scheduled
from exchange_simulation.reports.run.seconds_tables import CLOCK_WORDS, MOST_IN_TERMINAL
from exchange_simulation.reports.tables import FoldingTable, key_column, plain_table, terminal

Row = dict[str, Any]
FEWEST_SAMPLES = 30
"""Fewer samples say too little of single seconds."""
AIM_SAMPLES = 100
"""The samples that the proposed sampling interval gives."""


def show_samples(folder: Path, record: Row) -> None:
    """Print a row for each of the run's seconds and one of all, or what to do if there are too few samples.

    It reads Spark's tables.
    """
    seconds = pyarrow.parquet.read_table(folder / "tables" / "sample_seconds.parquet").to_pylist()
    (whole,) = pyarrow.parquet.read_table(folder / "tables" / "sample_summary.parquet").to_pylist()
    orders = record["counts"]["orders_answered"]
    clock = "due" if is_scheduled(record) else "handed_over"
    sampled = counted(whole["samples"], "sampled orders")
    click.echo(f"Spark's figures of {sampled} of {orders:,}, microseconds from {CLOCK_WORDS[clock]}")
    if whole["samples"] < FEWEST_SAMPLES:
        click.echo(_advice(whole["samples"], orders))
        seconds = []
    if len({row["source"] for row in seconds}) > 1 or len(seconds) > MOST_IN_TERMINAL:
        click.echo(printable(f"each second's figures: {folder / 'tables' / 'sample_seconds.parquet'}"))
        seconds = []
    exact = _exact_p50(folder, f"{clock}_p50_us")
    if record["settings"].get("warm_up_s"):
        exact[None] = None  # the run's figures leave out the warm-up, which is among the samples
    terminal().print(_table([*seconds, {**whole, "second": None}], exact))


def _table(rows: Sequence[Row], exact_p50_us: dict[int | None, float | None]) -> FoldingTable:
    table = plain_table(
        key_column("second", from_right=True), "samples", "p50", "95 % interval", "mean", "max", "p50 of all orders"
    )
    for row in rows:
        second: int | None = row["second"]
        table.add_row(
            "all" if second is None else str(second),
            f"{row['samples']:,}",
            _number(row["p50_us"]),
            _interval(row["p50_low_us"], row["p50_high_us"]),
            _number(row["mean_us"]),
            _number(row["max_us"]),
            _number(exact_p50_us.get(second)),
        )
    return table


def _interval(low_us: float | None, high_us: float | None) -> str:
    """Return the interval in words; ABSENT if there are too few samples for one."""
    if low_us is None or high_us is None:
        return ABSENT
    return f"{number_text(low_us)} to {number_text(high_us)}"


def _number(value_us: float | None) -> str:
    return ABSENT if value_us is None else number_text(value_us)


def _exact_p50(folder: Path, column: str) -> dict[int | None, float | None]:
    """Return the p50 of all orders by second; that of the whole run by None."""
    tables = folder / "tables"
    seconds = pyarrow.parquet.read_table(tables / "seconds.parquet", columns=["second", column]).to_pylist()
    (whole,) = pyarrow.parquet.read_table(tables / "summary.parquet", columns=[column]).to_pylist()
    return {None: whole[column], **{row["second"]: row[column] for row in seconds}}


def _advice(samples: int, orders: int) -> str:
    """Return a sentence that names the sampling interval which would give enough samples."""
    interval = max(1, orders // AIM_SAMPLES)
    more = counted(orders // interval, "samples")
    return f"{counted(samples, 'samples')} say little: --sampling-interval {interval} gives {more}"
