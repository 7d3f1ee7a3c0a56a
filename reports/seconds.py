"""A second of a run as cells of a table in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reports.formats import ABSENT, not_told

Row = Mapping[str, Any]
Columns = Mapping[str, tuple[str, str]]

COLUMNS: Columns = {
    "second": ("second", "{:,}"),
    "offered": ("offered_orders_per_s", "{:,.0f}"),
    "sent": ("orders_per_s", "{:,.0f}"),
    "answered": ("answered_orders_per_s", "{:,.0f}"),
    "p50 us": ("{clock}_p50_us", "{:,.0f}"),
    "p99 us": ("{clock}_p99_us", "{:,.0f}"),
    "max us": ("{clock}_max_us", "{:,.0f}"),
    "handed over p50": ("handed_over_p50_us", "{:,.0f}"),
    "lag p99": ("lag_p99_us", "{:,.0f}"),
    "gateway": ("gateway_cpu_cores", "{:.2f}"),
    "engine": ("engine_cpu_cores", "{:.2f}"),
}
"""By title: a figure, and the format of its values. Orders are orders/s; the last two are cores in use."""


def cells(row: Row, clock: str, columns: Columns) -> Iterator[str]:
    """The figures of these columns; completion times are those of `clock`."""
    for column, form in columns.values():
        name = column.format(clock=clock)
        value = row.get(name)
        yield ABSENT if value is None else not_told(row, name) or form.format(value)
