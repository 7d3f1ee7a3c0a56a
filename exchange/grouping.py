"""Values grouped by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def grouped(values: Iterable[T], name_of: Callable[[T], str]) -> dict[str, list[T]]:
    """Return the values of each name; names and values stay in their order."""
    groups: dict[str, list[T]] = {}
    for value in values:
        groups.setdefault(name_of(value), []).append(value)
    return groups
