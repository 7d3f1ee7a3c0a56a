"""The formats of numbers that the templates of pages choose by name."""

from __future__ import annotations

from collections.abc import Callable

from exchange_simulation.reports.formats.numbers import three_digits, whole_number
from exchange_simulation.reports.formats.times import time_in_words


def _hundredths(value: float) -> str:
    return f"{value:,.2f}"


def _megabytes(bytes_: float) -> str:
    return f"{bytes_ / 1e6:,.0f}"


TEMPLATE_FORMATS: dict[str, Callable[[float], str]] = {
    "whole": whole_number,
    "hundredths": _hundredths,
    "three_digits": three_digits,
    "time": time_in_words,
    "megabytes": _megabytes,
}
"""The macro `figure` of drawing/macros.html reads this table."""
