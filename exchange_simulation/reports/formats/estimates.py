"""Estimates of comparison.json as text: the median over repeats, and the middle half of the repeats."""

from __future__ import annotations

from statistics import quantiles
from typing import Any

from exchange_simulation.reports.formats.numbers import ABSENT, number_text

Estimate = dict[str, Any]
"""`median`, and `by_repeat`: the value of each repeat."""


def median_text(estimate: Estimate | None) -> str:
    """Return the median; "-" if there is no estimate. For example: 162"""
    return number_text(estimate["median"]) if estimate else ABSENT


def middle_half_ends(estimate: Estimate) -> tuple[float, float]:
    """Return the lower and upper end of the middle half of the repeats; both are the median if there is one repeat."""
    values = list(estimate["by_repeat"].values())
    if len(values) < 2:
        return estimate["median"], estimate["median"]
    lower_quartile, _, upper_quartile = quantiles(values, method="inclusive")
    return lower_quartile, upper_quartile


def middle_half(estimate: Estimate | None) -> str:
    """Return the middle half of the repeats in brackets; empty if there is one repeat. For example: (151..180)"""
    if not estimate or len(estimate["by_repeat"]) < 2:
        return ""
    low, high = middle_half_ends(estimate)
    return f"({number_text(low)}..{number_text(high)})"


def with_middle_half(estimate: Estimate | None) -> str:
    """Return the median with the middle half of the repeats. For example: 162 (151..180)"""
    return f"{median_text(estimate)} {middle_half(estimate)}".rstrip()
