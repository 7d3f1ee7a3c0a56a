"""Values without repetitions, in the order of first appearance."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def unique(values: Iterable[T]) -> list[T]:
    """Return the values without repetitions, in the order of first appearance."""
    return list(dict.fromkeys(values))
