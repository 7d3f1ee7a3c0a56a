"""Ratios and their intervals as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exchange.estimates import IntervalEstimate

MOST_DECIMALS = 5


def ratio_in_words(ratio: float, decimals_of: float | None = None) -> str:
    """Return a ratio with two or three digits, or with as many decimals as the ratio `decimals_of` would have.

    A ratio close to 1 gets as many decimals as it takes to differ from 1.00, so that an interval that ends there does
    not seem to contain 1; a ratio close to 0 as many as it takes to differ from 0. For example: 1.04, 3.1, 25, 1.0004,
    0.004
    """
    size = ratio if decimals_of is None else decimals_of
    if size < 2:
        least_decimals = 2
    elif size < 20:
        least_decimals = 1
    else:
        least_decimals = 0
    for decimals in range(least_decimals, MOST_DECIMALS + 1):
        if float(f"{ratio:.{decimals}f}") not in (0.0, 1.0):
            return f"{ratio:,.{decimals}f}"
    return f"{ratio:,.{least_decimals}f}"


def interval_in_words(ratio: IntervalEstimate) -> str:
    """Return a ratio's interval in brackets; empty if the estimate has none. For example: (2.9..3.4)"""
    if ratio.low is None or ratio.high is None:
        return ""
    low = ratio_in_words(ratio.low, decimals_of=ratio.value)
    high = ratio_in_words(ratio.high, decimals_of=ratio.value)
    return f"({low}..{high})"
