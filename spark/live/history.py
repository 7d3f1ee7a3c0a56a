"""One source's reading at the end of each second."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import NamedTuple

NS_PER_S = 1_000_000_000


class Reading(NamedTuple):
    """Both only grow."""

    monotonic_ns: int
    cpu_s: float = 0.0


class History:
    """Of several readings of one second, the last one counts, in whatever order they come."""

    def __init__(self) -> None:
        self._readings: dict[int, Reading] = {}
        self._seconds: list[int] = []

    def put(self, second: int, reading: Reading) -> None:
        before = self._readings.get(second)
        if before is None:
            insort(self._seconds, second)
            before = reading
        self._readings[second] = Reading(
            max(before.monotonic_ns, reading.monotonic_ns), max(before.cpu_s, reading.cpu_s)
        )

    @property
    def last(self) -> int | None:
        return self._seconds[-1] if self._seconds else None

    def after(self, second: int) -> int | None:
        """The next second that there is, whose reading is seen against this one's."""
        at = bisect_left(self._seconds, second + 1)
        return self._seconds[at] if at < len(self._seconds) else None

    def grown(self, second: int) -> Reading | None:
        """What passed, and was used, since the reading before; the first one counts from the clock's start."""
        reading = self._readings.get(second)
        if reading is None:
            return None
        at = bisect_left(self._seconds, second)
        if at == 0:
            return Reading((second + 1) * NS_PER_S, reading.cpu_s)
        before = self._readings[self._seconds[at - 1]]
        return Reading(reading.monotonic_ns - before.monotonic_ns, reading.cpu_s - before.cpu_s)
