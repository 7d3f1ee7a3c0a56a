"""How far a host's monotonic clock is from ours: bounds from questions and answers, as in Cristian's algorithm.

Our clock shows `asked_ns` before the host reads its clock, and `answered_ns` after that. So the host's reading minus
our time of that moment is between reading - answered_ns and reading - asked_ns. The reading is `host_ns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class OffsetReading:
    """One question and its answer."""

    asked_ns: int
    host_ns: int
    answered_ns: int

    @property
    def offset(self) -> ClockOffset:
        """The bounds of the offset that follow from this reading."""
        return ClockOffset(self.host_ns - self.answered_ns, self.host_ns - self.asked_ns)


@dataclass(frozen=True)
class ClockOffset:
    """Bounds of a host's monotonic clock minus ours, in ns."""

    low_ns: int
    high_ns: int

    @property
    def middle_ns(self) -> int:
        return (self.low_ns + self.high_ns) // 2

    @property
    def bound_ns(self) -> int:
        """The largest distance of the true offset from the middle."""
        return (self.high_ns - self.low_ns + 1) // 2

    def widened_by(self, later: ClockOffset) -> ClockOffset:
        """Return bounds that hold at this time, at the later time and between, if the clocks drift steadily."""
        return ClockOffset(min(self.low_ns, later.low_ns), max(self.high_ns, later.high_ns))

    def minus(self, other: ClockOffset) -> ClockOffset:
        """Return the bounds of this host's clock minus the other host's."""
        return ClockOffset(self.low_ns - other.high_ns, self.high_ns - other.low_ns)


SAME_CLOCK = ClockOffset(0, 0)
"""The offset of a clock to itself."""


def narrowest(readings: Sequence[OffsetReading]) -> ClockOffset:
    """Return the narrowest bounds that all readings allow: the true offset is within the bounds of each."""
    low_ns = max(reading.offset.low_ns for reading in readings)
    high_ns = min(reading.offset.high_ns for reading in readings)
    if low_ns > high_ns:  # the clocks drifted by more than the narrowest round trip
        return min((reading.offset for reading in readings), key=lambda offset: offset.bound_ns)
    return ClockOffset(low_ns, high_ns)
