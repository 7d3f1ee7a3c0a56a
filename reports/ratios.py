"""Ratios and their intervals in words."""

from __future__ import annotations

from exchange.estimates import Estimate


def times(factor: float, like: float | None = None) -> str:
    """Two or three digits: 1.04, 3.1, 25. An end of an interval gets as many decimals as its middle, `like`.

    What is not 1 is not written as 1.00, since an interval that ends at 1.00 seems to hold 1.
    """
    size = factor if like is None else like
    decimals = 2 if size < 2 else 1 if size < 20 else 0
    apart = (more for more in range(decimals, 6) if float(f"{factor:.{more}f}") != 1.0)
    return f"{factor:,.{next(apart, decimals)}f}"


def interval(ratio: Estimate) -> str:
    """(2.9..3.4), or nothing if the estimate has no interval."""
    if ratio.low is None or ratio.high is None:
        return ""
    return f"({times(ratio.low, ratio.value)}..{times(ratio.high, ratio.value)})"
