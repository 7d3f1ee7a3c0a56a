"""Numbers and settings as a reader wants them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard


def is_number(value: object) -> TypeGuard[float]:
    """What is no number was not measured."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def three_digits(value: float) -> str:
    """At least three digits that count, thousands set apart: 0.0512, 7.13, 94.0, 1,240."""
    for limit, decimals in ((100, 0), (10, 1), (1, 2), (0.1, 3)):
        if abs(value) >= limit:
            return f"{value:,.{decimals}f}"
    return f"{value:.4f}" if value else "0"


FORMATS: dict[str, Callable[[float], str]] = {
    "whole": lambda value: f"{value:,.0f}",
    "hundredths": lambda value: f"{value:,.2f}",
    "three_digits": three_digits,
    "megabytes": lambda value: f"{value / 1e6:,.0f}",
}


def axis_number(value: float, _position: int | None = None) -> str:
    return f"{value / 1e6:,.10g} M" if value >= 1e6 else f"{value:,.10g}"


def plain(value: object) -> str:
    """A setting of any shape in one line; numbers as they are, for a seed or a port is no amount."""
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
    """A condition's name and value in words."""
    if name == "orders_per_s" and value is None:
        return "orders/s", "as fast as it goes"
    if name.endswith("_bytes") and is_number(value):
        return name.removesuffix("_bytes"), f"{value / 2**30:,.1f} GiB"
    if name.endswith("_s") and not name.endswith("_per_s"):
        return name.removesuffix("_s").replace("_", " "), f"{plain(value)} s" if is_number(value) else plain(value)
    return name.replace("_per_s", "/s").replace("_", " "), plain(value)
