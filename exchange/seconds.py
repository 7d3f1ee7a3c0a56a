"""The definition of a second of a run, for all readers of statistics records: page, terminal, live, run.json, Spark.

- A line that stands twice in a spool counts once: `Once`.
- Completion times are merged by adding log buckets; the last order is left out: `is_analysed`, `merged`.
- A rate is the growth between two readings of one source, over the time between them. So a second that ends late keeps
  its rate. An interval under half a second has no rate: `Reading`, `History`, `rates_of`.
- The figure of a second is the sum of what its sources report: `added`.
- The last second is seldom a whole one. It is shown with the others if it has a tenth of their usual orders: `is_full`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from exchange.measurements import NS_PER_S, LogBuckets
from exchange.second_columns import RATES

SHORTEST_INTERVAL_S = 0.5
"""CPU time comes in hundredths of a second, so a rate over a shorter interval says nothing."""
LEAST_SHARE = 0.1
"""Share of the usual number of orders from which on the last second is shown."""

Payload = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)


class Once:
    """Recognises lines that it has met before. It keeps a 64-bit hash of each, not the line."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()

    def is_new(self, line: bytes) -> bool:
        """Return whether the line has not come before."""
        before = len(self._hashes)
        self._hashes.add(hash(line))
        return len(self._hashes) > before


def is_analysed(completion: Payload) -> bool:
    """Return whether figures include this payload's times: they leave out the last order, which has its own record."""
    return bool(completion["count"]) and not completion["last_order"]


def merged(completions: Iterable[Payload]) -> LogBuckets:
    """Return one histogram of all these completion payloads."""
    return LogBuckets.together(map(LogBuckets.from_sparse, completions))


def merged_by(completions: Iterable[tuple[Key, Payload]]) -> dict[Key, LogBuckets]:
    """Return a histogram of the completion payloads of each key, in the order in which keys first appear."""
    histograms: dict[Key, LogBuckets] = {}
    for key, payload in completions:
        histograms.setdefault(key, LogBuckets()).merge(LogBuckets.from_sparse(payload))
    return histograms


def is_full(last: float, others: Sequence[float]) -> bool:
    """Return whether the last second answered enough orders to stand beside the others, given the count of each."""
    return not others or last >= LEAST_SHARE * float(np.median(others))


class Reading(NamedTuple):
    """A source's clock and the CPU time of its process, or the growth of both between two readings.

    Both only grow, unless the source was started again: its new process counts CPU time from 0.
    """

    monotonic_ns: int
    cpu_s: float = 0.0

    @property
    def length_s(self) -> float:
        return self.monotonic_ns / NS_PER_S

    @property
    def is_long_enough(self) -> bool:
        return self.length_s >= SHORTEST_INTERVAL_S

    @property
    def cores(self) -> float:
        """CPU seconds per second of the source's clock."""
        return self.cpu_s / self.length_s

    def since(self, before: Reading) -> Reading:
        """Return the growth since an earlier reading. If CPU time shrank, a new process began it at 0."""
        used_s = self.cpu_s - before.cpu_s
        if used_s < 0:
            used_s = self.cpu_s
        return Reading(self.monotonic_ns - before.monotonic_ns, used_s)


class History:
    """One source's reading at the end of each second. Of several readings of one second the latest counts.

    `duration_s` is the run's, if it is known: the only reading of a run that ended within its first second covers
    that time, not a whole second.
    """

    def __init__(self, duration_s: float | None = None) -> None:
        self._duration_s = duration_s
        self._readings: dict[int, Reading] = {}
        self._seconds: list[int] = []

    def put(self, second: int, reading: Reading) -> Reading:
        """Add a reading and return its second's growth; readings may come in any order."""
        before = self._readings.get(second)
        if before is None:
            insort(self._seconds, second)
            before = reading
        self._readings[second] = Reading(
            monotonic_ns=max(before.monotonic_ns, reading.monotonic_ns),
            cpu_s=max(before.cpu_s, reading.cpu_s),
        )
        return self._grown(second)

    @property
    def last(self) -> int:
        """The latest second; -1 before there is one."""
        return self._seconds[-1] if self._seconds else -1

    def after(self, second: int) -> int | None:
        """Return the next second with a reading, whose growth counts from this one's; None if there is none."""
        at = bisect_left(self._seconds, second + 1)
        return self._seconds[at] if at < len(self._seconds) else None

    def grown(self, second: int) -> Reading | None:
        """Return the growth since the previous reading; for the first reading, since the clock's start."""
        return self._grown(second) if second in self._readings else None

    def _grown(self, second: int) -> Reading:
        reading = self._readings[second]
        at = bisect_left(self._seconds, second)
        if at == 0:
            return Reading(self._first_ns(second), reading.cpu_s)
        second_before = self._seconds[at - 1]
        return reading.since(self._readings[second_before])

    def whole(self) -> Reading | None:
        """Return the growth from the clock's start to the last reading; None before there is one.

        A source that was started again has used the CPU time of each of its processes.
        """
        if not self._seconds:
            return None
        readings = [self._readings[second] for second in self._seconds]
        length_ns = self._first_ns(self._seconds[0]) + readings[-1].monotonic_ns - readings[0].monotonic_ns
        ended_processes_s = sum(last.cpu_s for last, first in pairwise(readings) if first.cpu_s < last.cpu_s)
        return Reading(length_ns, ended_processes_s + readings[-1].cpu_s)

    def _first_ns(self, second: int) -> int:
        """Return the time from the clock's start, which no reading marks, to the end of `second`."""
        since_ns = (second + 1) * NS_PER_S
        if len(self._seconds) > 1 or self._duration_s is None:
            return since_ns
        duration_ns = round(self._duration_s * NS_PER_S)
        return min(duration_ns, since_ns)


def rates_of(counts: Mapping[str, Any], grown: Reading) -> dict[str, float]:
    """Return the RATES of a source's counts since its reading before; empty if too little time has passed."""
    if not grown.is_long_enough:
        return {}
    return {rate: counts[name] / grown.length_s for name, rate in RATES.items() if name in counts}


def added(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum of each figure over the rows that have it."""
    total: dict[str, Any] = {}
    for row in rows:
        for name, value in row.items():
            total[name] = total.get(name, 0) + value
    return total
