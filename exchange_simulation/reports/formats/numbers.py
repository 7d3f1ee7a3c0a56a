"""Numbers as text."""

from __future__ import annotations

from typing import TypeGuard

ABSENT = "-"
"""Stands in place of a value that was not measured."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether the value was measured: it is a number, not null and not absent."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def three_digits(value: float) -> str:
    """Return three significant digits or all of an integer part, at most four decimals, thousands separated.

    For example: 0.0012, 0.0512, 7.13, 94.0, 1,240
    """
    if value == 0:
        return "0"
    for limit, decimals in ((100, 0), (10, 1), (1, 2), (0.1, 3)):
        if abs(value) >= limit:
            return f"{value:,.{decimals}f}"
    return f"{value:.4f}"


def number_text(value: float) -> str:
    """Return a whole number from 100 on, else three significant digits. For example: 1,240, 7.13"""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def whole_number(value: float | None) -> str:
    """Return a whole number; "-" if it was not measured. For example: 1,240"""
    return ABSENT if value is None else f"{value:,.0f}"


def rate_text(orders_per_s: float | None) -> str:
    """Return a rate; "max" if orders have no due times. For example: 8,000"""
    return "max" if orders_per_s is None else f"{orders_per_s:,.10g}"


def axis_number(value: float, _position: int | None = None) -> str:
    """Return the number beside an axis' tick. For example: 8,000, 1.5 M"""
    return f"{value / 1e6:,.10g} M" if value >= 1e6 else f"{value:,.10g}"
