"""Options that take several numbers of participants: each number is a condition of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from exchange_simulation.launching.option_types import Count, Listed


def numbers_option(
    flag: str, parameter: str, least: int, most: int, explanation: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return an option that takes numbers from `least` to `most`, parted by commas; `least` is its default."""
    return click.option(
        flag,
        parameter,
        type=Listed(Count(least, most)),
        default=str(least),
        show_default=True,
        metavar="NUMBER[,...]",
        help=explanation,
    )
