"""What a record speaks of: the time since the record of the second before."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """Of one source: `second` is over, which was told at `at_ns`; `total` counts from its clock's start."""

    second: int
    at_ns: int
    total: float = 0.0


class Intervals:
    """Of one source, reading by reading."""

    def __init__(self) -> None:
        self._before: Reading | None = None
        self._last: Reading | None = None

    def until(self, reading: Reading) -> tuple[float, float]:
        """(how long it was in seconds, by how much the total grew); the first began with the source's clock."""
        if self._last is not None and self._last.second != reading.second:
            self._before = self._last
        self._last = reading
        if self._before is None:
            return reading.second + 1.0, reading.total
        return (reading.at_ns - self._before.at_ns) / 1e9, reading.total - self._before.total
