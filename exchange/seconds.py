"""The definition of a second of a run, for all readers of statistics records: page, terminal, live, run.json, Spark.

- A line that stands twice in a spool counts once: `Once`.
- Completion times are merged by adding log buckets; the last order is left out: `is_analysed`, `merged`.
- A rate is the growth between two readings of one source, over the time between them. So a second that ends late keeps
  its rate. An interval under half a second has no rate: `History`, `SourceInterval`, `rates_of`.
- The figure of a second is the sum of what its sources report: `sum_by_name`.
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
"""The last second is shown if it has at least this share of the median number of orders."""

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


class SourceReading(NamedTuple):
    """A source's readings at the end of a second: its clock, and the CPU time that its process has used.

    Both only grow, unless the source was started again: its new process counts CPU time from 0.
    """

    monotonic_ns: int
    cpu_s: float = 0.0


class SourceInterval(NamedTuple):
    """The time between two readings of a source, by its clock, and the CPU time that its process used in it."""

    length_ns: int
    cpu_s: float = 0.0

    @classmethod
    def between(cls, earlier: SourceReading, later: SourceReading) -> SourceInterval:
        """Return the interval from one reading to a later one. If CPU time shrank, a new process began it at 0."""
        used_s = later.cpu_s - earlier.cpu_s
        if used_s < 0:
            used_s = later.cpu_s
        return cls(later.monotonic_ns - earlier.monotonic_ns, used_s)

    @property
    def length_s(self) -> float:
        return self.length_ns / NS_PER_S

    @property
    def is_long_enough(self) -> bool:
        """True if rates and cores say something over this time."""
        return self.length_s >= SHORTEST_INTERVAL_S

    @property
    def cores(self) -> float:
        """CPU seconds per second of the source's clock."""
        return self.cpu_s / self.length_s


class History:
    """One source's reading at the end of each second that it reported. Readings may come in any order.

    `duration_s` is the run's length, None while the run goes on. A run may end within its first second: then it has
    one reading, which covers the run's length and not a whole second.
    """

    def __init__(self, duration_s: float | None = None) -> None:
        self._duration_s = duration_s
        self._readings: dict[int, SourceReading] = {}
        self._seconds: list[int] = []
        """The seconds with a reading, in order."""

    def put(self, second: int, reading: SourceReading) -> None:
        """Add a reading. If the second has one already, the larger clock and CPU time count: both only grow."""
        earlier = self._readings.get(second)
        if earlier is None:
            insort(self._seconds, second)
            self._readings[second] = reading
            return
        self._readings[second] = SourceReading(
            monotonic_ns=max(earlier.monotonic_ns, reading.monotonic_ns),
            cpu_s=max(earlier.cpu_s, reading.cpu_s),
        )

    @property
    def last(self) -> int:
        """The latest second with a reading; -1 before there is one."""
        return self._seconds[-1] if self._seconds else -1

    def after(self, second: int) -> int | None:
        """Return the next second with a reading, whose interval begins with this second's; None if there is none."""
        at = bisect_left(self._seconds, second + 1)
        return self._seconds[at] if at < len(self._seconds) else None

    def interval_ending(self, second: int) -> SourceInterval | None:
        """Return the interval from the reading before to this second's; for the first reading, from the clock's start.

        None if the second has no reading.
        """
        if second not in self._readings:
            return None
        reading = self._readings[second]
        at = bisect_left(self._seconds, second)
        if at == 0:
            return SourceInterval(self._length_until_first_reading_ns(), reading.cpu_s)
        second_before = self._seconds[at - 1]
        return SourceInterval.between(self._readings[second_before], reading)

    def whole_interval(self) -> SourceInterval | None:
        """Return the interval from the clock's start to the last reading; None without a reading.

        A source that was started again has used the CPU time of each of its processes.
        """
        if not self._seconds:
            return None
        readings = [self._readings[second] for second in self._seconds]
        length_ns = self._length_until_first_reading_ns() + readings[-1].monotonic_ns - readings[0].monotonic_ns
        cpu_s = readings[-1].cpu_s
        for reading, next_reading in pairwise(readings):
            is_new_process = next_reading.cpu_s < reading.cpu_s
            if is_new_process:
                cpu_s += reading.cpu_s
        return SourceInterval(length_ns, cpu_s)

    def _length_until_first_reading_ns(self) -> int:
        """Return the time from the clock's start, which no reading marks, to the first reading."""
        whole_seconds_ns = (self._seconds[0] + 1) * NS_PER_S
        is_only_reading = len(self._seconds) == 1
        if is_only_reading and self._duration_s is not None:
            return min(whole_seconds_ns, round(self._duration_s * NS_PER_S))
        return whole_seconds_ns


def rates_of(counts: Mapping[str, Any], interval: SourceInterval) -> dict[str, float]:
    """Return the RATES of a source's counts in an interval; empty if it is too short."""
    if not interval.is_long_enough:
        return {}
    return {rate: counts[name] / interval.length_s for name, rate in RATES.items() if name in counts}


def sum_by_name(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum of each figure over the rows that have it."""
    total: dict[str, Any] = {}
    for row in rows:
        for name, value in row.items():
            total[name] = total.get(name, 0) + value
    return total
