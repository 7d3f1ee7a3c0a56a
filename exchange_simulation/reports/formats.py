"""Numbers, estimates, ratios, settings, and the seconds of a run in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from statistics import quantiles
from typing import TYPE_CHECKING, Any, TypeGuard

from exchange.percentiles import LEAST_ORDERS
from exchange.second_columns import SecondColumn, Unit

if TYPE_CHECKING:
    from exchange.estimates import IntervalEstimate

ABSENT = "-"


SECOND_FORMATS = {Unit.CORES: "{:.2f}"}
"""The format of a second's figures, where it is not a whole number."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether the value was measured: it is a number, not null and not absent."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def three_digits(value: float) -> str:
    """Return three significant digits or all of an integer part, at most four decimals, thousands separated.

    For example: 0.0012, 0.0512, 7.13, 94.0, 1,240
    """
    for limit, decimals in ((100, 0), (10, 1), (1, 2), (0.1, 3)):
        if abs(value) >= limit:
            return f"{value:,.{decimals}f}"
    return f"{value:.4f}" if value else "0"


def time_in_words(us: float) -> str:
    """Return microseconds in the unit that suits them. For example: 949 µs, 12.8 ms, 46.2 s"""
    if us >= 1e7:
        return f"{three_digits(us / 1e6)} s"
    if us >= 1e4:
        return f"{three_digits(us / 1e3)} ms"
    return f"{three_digits(us)} µs"


def duration_in_words(seconds: float) -> str:
    """Return seconds in the two units that suit them. For example: 6 s, 3 min 20 s, 2 h 5 min"""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def times(factor: float, like: float | None = None) -> str:
    """Return a factor with two or three digits. An end of an interval gets as many decimals as its middle, `like`.

    A factor other than 1 gets more decimals rather than be written as 1.00: an interval that ends at 1.00 seems to hold
    1. For example: 1.04, 3.1, 25
    """
    size = factor if like is None else like
    if size < 2:
        decimals = 2
    elif size < 20:
        decimals = 1
    else:
        decimals = 0
    for more in range(decimals, 6):
        if float(f"{factor:.{more}f}") != 1.0:
            return f"{factor:,.{more}f}"
    return f"{factor:,.{decimals}f}"


def interval(ratio: IntervalEstimate) -> str:
    """Return an interval in brackets; empty if the estimate has none. For example: (2.9..3.4)"""
    if ratio.low is None or ratio.high is None:
        return ""
    return f"({times(ratio.low, ratio.value)}..{times(ratio.high, ratio.value)})"


FORMATS: dict[str, Callable[[float], str]] = {
    "whole": lambda value: f"{value:,.0f}",
    "hundredths": lambda value: f"{value:,.2f}",
    "three_digits": three_digits,
    "time": time_in_words,
    "megabytes": lambda value: f"{value / 1e6:,.0f}",
}


def whole(value: float | None) -> str:
    """Return a whole number; "-" if it was not measured. For example: 1,240"""
    return ABSENT if value is None else f"{value:,.0f}"


def number(value: float) -> str:
    """Return a whole number from 100 on, else three digits. For example: 1,240, 7.13"""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rate(orders_per_s: float | None) -> str:
    """Return a rate; "max" if orders have no due times. For example: 8,000"""
    return "max" if orders_per_s is None else f"{orders_per_s:,.10g}"


def axis_number(value: float, _position: int | None = None) -> str:
    return f"{value / 1e6:,.10g} M" if value >= 1e6 else f"{value:,.10g}"


def rounded(estimate: dict[str, Any] | None) -> str:
    """Return the median of an estimate of comparison.json; "-" if there is none. For example: 162"""
    return number(estimate["median"]) if estimate else ABSENT


def ends(estimate: dict[str, Any]) -> tuple[float, float]:
    """Return the ends of the middle half of the repeats; both are the value itself if there is one repeat."""
    values = list(estimate["by_repeat"].values())
    if len(values) < 2:
        return estimate["median"], estimate["median"]
    low, _, high = quantiles(values, method="inclusive")
    return low, high


def middle_half(estimate: dict[str, Any] | None) -> str:
    """Return the middle half of the repeats in brackets; empty if there is one repeat. For example: (151..180)"""
    if not estimate or len(estimate["by_repeat"]) < 2:
        return ""
    low, high = ends(estimate)
    return f"({number(low)}..{number(high)})"


def with_middle_half(estimate: dict[str, Any] | None) -> str:
    """Return the median with the middle half of the repeats. For example: 162 (151..180)"""
    return f"{rounded(estimate)} {middle_half(estimate)}".rstrip()


def has_enough_orders(percentile: str, orders: float | None) -> bool:
    """Return whether ten orders or more are slower than the percentile; with fewer it is about the maximum.

    True for other figures, and if the number of orders is not known.
    """
    return orders is None or orders >= LEAST_ORDERS.get(percentile, 0)


def maximum_instead(row: Mapping[str, Any], name: str) -> str | None:
    """Return words in place of a row's figure such as due_p99_us, if its due_count is too small; None otherwise.

    For example: max of 499
    """
    clock, _, percentile = name.removesuffix("_us").rpartition("_")
    orders = row.get(f"{clock}_count")
    return None if has_enough_orders(percentile, orders) else max_of(orders or 0)


def max_of(orders: float) -> str:
    """Return words in place of a percentile that so few orders do not tell. For example: max of 499"""
    return f"max of {orders:,.0f}"


def date_and_time(iso_time: str) -> str:
    """Return a time in words; a text that is no time stays as it is. For example: 21 November 2026, 18:22 UTC"""
    try:
        at = datetime.fromisoformat(iso_time)
    except ValueError:
        return iso_time
    return f"{at.day} {at:%B %Y, %H:%M} {at.tzname() or ''}".strip()


def plain(value: object) -> str:
    """Return a setting of any shape in one line.

    Numbers have no thousands separators, since a seed or a port is no amount.
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(plain(inner) for inner in value) or "none"
    return f"{round(value, 3):.10g}" if isinstance(value, float) else str(value)


def condition(name: str, value: object) -> tuple[str, str]:
    """Return a condition's name and value in words. For example: ("memory", "7.7 GiB")"""
    if name == "orders_per_s" and value is None:
        return "orders/s", "as fast as it goes"
    if name.endswith("_bytes") and is_number(value):
        return name.removesuffix("_bytes"), f"{value / 2**30:,.1f} GiB"
    if name.endswith("_s") and not name.endswith("_per_s"):
        return name.removesuffix("_s").replace("_", " "), f"{plain(value)} s" if is_number(value) else plain(value)
    return name.replace("_per_s", "/s").replace("_", " "), plain(value)


def cell(row: Mapping[str, Any], name: str, form: str) -> str:
    """Return a figure of a row in this format; "-" if it was not measured, "max of 499" if too few orders tell it."""
    value = row.get(name)
    if value is None:
        return ABSENT
    return maximum_instead(row, name) or form.format(value)


def second_cells(row: Mapping[str, Any], columns: Iterable[SecondColumn], clock: str) -> list[str]:
    """Return a second's number and its figures in these columns; completion times are those of `clock`."""
    figures = [
        cell(row, column.figure.format(clock=clock), SECOND_FORMATS.get(column.unit, "{:,.0f}")) for column in columns
    ]
    return [f"{row['second']:,}", *figures]
