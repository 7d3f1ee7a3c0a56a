"""Values without repetitions, in the order in which each came first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def unique(values: Iterable[T]) -> list[T]:
    """The values, each once, in the order in which each came first."""
    return list(dict.fromkeys(values))
