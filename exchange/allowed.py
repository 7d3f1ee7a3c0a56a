"""What a setting may be, and what is said of one that it may not be."""

from __future__ import annotations

import math


class BadSetting(ValueError):
    """Which field, what it was, what is allowed."""

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(f"{name.replace('_', '-')} is {value!r}; allowed is {allowed}")
        self.field, self.value, self.allowed = name, value, allowed


def between(name: str, value: object, low: float, high: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and low <= value <= high):  # type: ignore[arg-type, operator]
        raise BadSetting(name, value, f"{low:,} to {high:,}")


def whole(name: str, value: object, low: int, high: int) -> None:
    if not (isinstance(value, int) and not isinstance(value, bool) and low <= value <= high):
        raise BadSetting(name, value, f"a whole number from {low:,} to {high:,}")
