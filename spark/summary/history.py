"""One source's reading at the end of each second."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import NamedTuple

NS_PER_S = 1_000_000_000
SHORTEST_INTERVAL_S = 0.5
"""What happens at the very end says nothing of a second."""


class Reading(NamedTuple):
    """Both only grow."""

    monotonic_ns: int
    cpu_s: float = 0.0


class History:
    """Of several readings of one second, the last one counts, in whatever order they come.

    `duration_s` is the run's, where it is known: what is said once, of a run within its first second, was since then.
    """

    def __init__(self, duration_s: float | None = None) -> None:
        self._duration_s = duration_s
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
            return Reading(self._first_ns(second), reading.cpu_s)
        before = self._readings[self._seconds[at - 1]]
        return Reading(reading.monotonic_ns - before.monotonic_ns, reading.cpu_s - before.cpu_s)

    def whole(self) -> Reading | None:
        """What passed, and was used, from the clock's start to the last reading."""
        if not self._seconds:
            return None
        first, last = (self._readings[self._seconds[at]] for at in (0, -1))
        return Reading(self._first_ns(self._seconds[0]) + last.monotonic_ns - first.monotonic_ns, last.cpu_s)

    def _first_ns(self, second: int) -> int:
        """The first reading closes the seconds since its clock started, which none marks."""
        since_ns = (second + 1) * NS_PER_S
        if len(self._seconds) > 1 or self._duration_s is None:
            return since_ns
        return min(round(self._duration_s * NS_PER_S), since_ns)
