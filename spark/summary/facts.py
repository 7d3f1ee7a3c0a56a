"""Counts, rates and cores of each second and of the run: all that is measured but completion times.

The same set of records gives the same figures, in whatever order it is taken. The last second is seldom a whole one:
its rate and cores are over the part that was run, and are absent if that part is shorter than SHORTEST_INTERVAL_S.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from exchange.instances import role_of
from exchange.records import THROUGHPUT, TRAFFIC
from exchange.seconds import SHORTEST_INTERVAL_S, History, Reading, added
from spark.summary.columns import CPU, RATE
from spark.summary.columns import TRAFFIC as COUNTED
from spark.summary.meters import Fact, PlacedMeters


class Traffic:
    """One gateway's counts of each second."""

    def __init__(self, duration_s: float | None) -> None:
        self._counts: defaultdict[int, list[int]] = defaultdict(lambda: [0] * len(COUNTED))
        self._history = History(duration_s)

    @property
    def last(self) -> int:
        """-1 before there is a second."""
        return -1 if self._history.last is None else self._history.last

    def take(self, fact: Fact) -> History:
        second = fact["second"]
        self._history.put(second, Reading(fact["monotonic_ns"]))
        self._counts[second] = [n + fact[name] for n, name in zip(self._counts[second], COUNTED, strict=True)]
        return self._history

    def row(self, second: int) -> dict[str, Any]:
        """Counts and rate; the rate of the last second is over the part of it that was run."""
        grown = self._history.grown(second)
        if grown is None:
            return {}
        row: dict[str, Any] = dict(zip(COUNTED, self._counts[second], strict=True))
        length_s = min(grown.length_s, 1.0) if second == self.last else 1.0
        if length_s >= SHORTEST_INTERVAL_S:
            row[RATE] = row["orders_sent"] / length_s
        return row

    def whole(self) -> dict[str, int]:
        """The counts of the run."""
        return dict(zip(COUNTED, map(sum, zip(*self._counts.values(), strict=True)), strict=True))


class Facts:
    """What is known of one run. Its duration is known once it has ended."""

    def __init__(self, duration_s: float | None = None) -> None:
        self._traffic: defaultdict[str, Traffic] = defaultdict(lambda: Traffic(duration_s))
        self._cpu: defaultdict[str, History] = defaultdict(lambda: History(duration_s))
        self._meters = PlacedMeters()

    @property
    def open_from(self) -> int:
        """The first second that a gateway may still report on."""
        return min((traffic.last for traffic in self._traffic.values()), default=-1)

    def take(self, facts: Iterable[Fact]) -> set[int] | None:
        """The seconds whose row may have changed; None if any row may have."""
        fresh: list[Fact] = []
        changed: set[int] = set()
        for fact in facts:
            if fact["kind"] == THROUGHPUT:
                fresh.append(fact)
            else:
                changed.update(self._take(fact))
        if self._meters.place(fresh):
            return None
        last = self._last
        return changed | {self._meters.second_of(fact, last) for fact in fresh}

    def row(self, second: int) -> dict[str, Any]:
        """The second's counts, rates and cores; a figure that is not known is absent."""
        counts = added(traffic.row(second) for traffic in self._traffic.values())
        grown = {source: history.grown(second) for source, history in self._cpu.items()}
        used = {source: reading for source, reading in grown.items() if reading and reading.is_long_enough}
        return {**counts, **self._meters.rates(second, self._last), **_cores(used)}

    def whole(self) -> dict[str, Any]:
        """The run's counts and cores. Its rates are run.json's, which are exact to the nanosecond."""
        counts = added(traffic.whole() for traffic in self._traffic.values())
        grown = {source: history.whole() for source, history in self._cpu.items()}
        used = {source: reading for source, reading in grown.items() if reading and reading.monotonic_ns > 0}
        return {**counts, **self._meters.whole(), **_cores(used)}

    @property
    def _last(self) -> int:
        """The last second of the run so far."""
        return max((traffic.last for traffic in self._traffic.values()), default=-1)

    def _take(self, fact: Fact) -> Iterator[int]:
        """The seconds that this fact changes: its own, and the next, whose growth counts from this one's reading."""
        second, source = fact["second"], fact["source"]
        if fact["kind"] == TRAFFIC:
            self._meters.clock_says(source, second, fact["wall_ns"])
            history = self._traffic[source].take(fact)
        else:
            history = self._cpu[source]
            history.put(second, Reading(fact["monotonic_ns"], fact["cpu_s"]))
        yield second
        if (after := history.after(second)) is not None:
            yield after


def _cores(used: dict[str, Reading]) -> dict[str, float]:
    """Cores in use by role: the sum over its sources."""
    named = [(f"{role_of(source)}_cpu_cores", reading.cores) for source, reading in used.items()]
    return added({name: cores} for name, cores in named if name in CPU)
