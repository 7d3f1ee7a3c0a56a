"""Percentiles of too few orders: the text in their place, and the cells of tables that may hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exchange.percentiles import LEAST_ORDERS
from exchange_simulation.reports.formats.numbers import ABSENT


def has_enough_orders(percentile: str, orders: float | None) -> bool:
    """Return whether ten orders or more are slower than the percentile; with fewer it is about the maximum.

    True for other figures, and if the number of orders is not known.
    """
    return orders is None or orders >= LEAST_ORDERS.get(percentile, 0)


def maximum_instead(row: Mapping[str, Any], figure: str) -> str | None:
    """Return "max of 499" if the figure is a percentile of too few orders; None otherwise.

    The figure due_p99_us is a percentile of as many orders as the row's due_count says.
    """
    clock, _, percentile = figure.removesuffix("_us").rpartition("_")
    orders = row.get(f"{clock}_count")
    return None if has_enough_orders(percentile, orders) else max_of(orders or 0)


def max_of(orders: float) -> str:
    """Return words in place of a percentile that cannot be estimated from so few orders. For example: max of 499"""
    return f"max of {orders:,.0f}"


def figure_cell(row: Mapping[str, Any], figure: str, template: str) -> str:
    """Return a figure of a row by a template such as "{:.2f}".

    "-" if the figure was not measured; "max of 499" if it is a percentile of too few orders.
    """
    value = row.get(figure)
    if value is None:
        return ABSENT
    return maximum_instead(row, figure) or template.format(value)
