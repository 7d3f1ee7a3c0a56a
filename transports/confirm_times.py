"""How long a broker takes to confirm what was published: counts of publishes by their time, rounded to a hundredth."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

CONFIRM_NS = "confirm_ns"
"""The fact of a link that has the rounded times, ascending."""
CONFIRM_COUNTS = "confirm_counts"
"""The fact of a link that has the number of publishes for each of these times."""
SIGNIFICANT_BITS = 7
"""Bits that remain of a time: it is rounded down by less than 1/64."""


@dataclass
class _Publishes:
    """Publishes that were handed over together."""

    last: int
    """The number of publishes up to the last of them."""
    sent_ns: int


@dataclass
class ConfirmTimes:
    """From handing a publish over to reading its confirm, for each publish, in ns.

    A publish counts as confirmed once it and all before it are, since brokers confirm many at once.
    """

    counts: dict[int, int] = field(default_factory=dict)
    """The number of publishes for each rounded time."""
    _waiting: deque[_Publishes] = field(default_factory=deque)
    _confirmed: int = 0

    def sent(self, published: int) -> None:
        """Note the number of publishes so far, right after some were handed over."""
        self._waiting.append(_Publishes(published, time.monotonic_ns()))

    def confirmed(self, confirmed: int) -> None:
        """Note the number of publishes that are confirmed by now."""
        if confirmed <= self._confirmed:
            return
        now_ns = time.monotonic_ns()
        while self._waiting and self._confirmed < confirmed:
            publishes = self._waiting[0]
            last = min(publishes.last, confirmed)
            took_ns = _rounded(now_ns - publishes.sent_ns)
            self.counts[took_ns] = self.counts.get(took_ns, 0) + last - self._confirmed
            self._confirmed = last
            if last == publishes.last:
                self._waiting.popleft()

    def add(self, times_ns: Iterable[int], counts: Iterable[int]) -> None:
        """Count the publishes of another link, by their rounded times."""
        for time_ns, count in zip(times_ns, counts, strict=True):
            self.counts[time_ns] = self.counts.get(time_ns, 0) + count

    def facts(self) -> dict[str, Any]:
        """The times, ascending, and how often each was; empty if nothing was confirmed."""
        if not self.counts:
            return {}
        times = sorted(self.counts)
        return {CONFIRM_NS: times, CONFIRM_COUNTS: [self.counts[time_ns] for time_ns in times]}


def _rounded(time_ns: int) -> int:
    """A time with SIGNIFICANT_BITS bits."""
    shift = max(time_ns.bit_length() - SIGNIFICANT_BITS, 0)
    return time_ns >> shift << shift
