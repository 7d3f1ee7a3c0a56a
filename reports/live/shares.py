"""What several sources say of the same second."""

from __future__ import annotations

from typing import Generic, TypeVar

SECONDS = 10
"""How far behind the others a source may be, and still be counted in."""

T = TypeVar("T")


class Shares(Generic[T]):
    """What a source says again takes the place of what it said before."""

    def __init__(self) -> None:
        self._said: dict[int, dict[str, T]] = {}

    def put(self, second: int, source: str, share: T) -> list[T]:
        """All that is said of this second by now; nothing where that was forgotten."""
        newest = max(self._said, default=second)
        if second <= newest - SECONDS:
            return []
        self._said.setdefault(second, {})[source] = share
        for old in [known for known in self._said if known <= second - SECONDS]:
            del self._said[old]
        return list(self._said[second].values())
