"""A tape offered again: its orders as they stand, and when it says that each was due."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gateway.due_times import NEVER_NS, Longs, whole_ns
from gateway.tape import CHUNK_ORDERS, ORDER, Bytes, due_path, mapped


class TapedOrders:
    """An order's id is its place on the tape."""

    def __init__(self, tape: Path) -> None:
        self._records = mapped(tape)

    def write(self, buffer: Bytes, first_id: int, count: int) -> None:
        """The records of `count` orders from `first_id` on, from the buffer's start."""
        start = (first_id - 1) * ORDER.size
        buffer[: count * ORDER.size] = self._records[start : start + count * ORDER.size]


class Recorded:
    """As the tape's due times say, counted from the first one, at `speed` times their speed."""

    def __init__(self, due_ns: Longs, speed: float) -> None:
        self._due_ns, self._speed = due_ns, speed
        self.at_once = most_at_once(due_ns)
        self._written = 0

    @classmethod
    def of(cls, tape: Path, orders: int, speed: float) -> Recorded:
        return cls(mapped(due_path(tape)).view("<i8")[:orders], speed)

    def write(self, due: Longs) -> None:
        part = self._due_ns[self._written : self._written + len(due)]
        due[: len(part)] = whole_ns((part - self._due_ns[0]) / self._speed)
        due[len(part) :] = NEVER_NS
        self._written += len(part)


def most_at_once(due: Longs) -> int:
    """The most orders with the same due time."""
    longest = start = 0
    for first in range(0, len(due), CHUNK_ORDERS):
        part = due[first : first + CHUNK_ORDERS + 1]
        starts = np.concatenate(([start], first + 1 + np.flatnonzero(part[1:] != part[:-1])))
        longest, start = max(longest, int(np.diff(starts).max(initial=0))), int(starts[-1])
    return max(longest, len(due) - start)
