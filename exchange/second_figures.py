"""Counts, rates and cores of each second and of the run: all that is measured but completion times.

Terminal, page, live view and Spark make their rows with these. The same set of records gives the same figures, in
whatever order it is taken. The last second is seldom a whole one: its rates and cores are absent if the part that was
run is shorter than half a second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from exchange.instances import role_of
from exchange.measurements import NS_PER_S
from exchange.records import THROUGHPUT, TRAFFIC
from exchange.second_columns import COUNTS, METERS
from exchange.seconds import History, SourceInterval, SourceReading, rates_of, sum_by_name

Fact = dict[str, Any]
"""The payload of a record of traffic, process or throughput, with the record's source, kind, wall_ns, monotonic_ns."""


class GatewayTraffic:
    """One gateway's counts of each second, and their rates."""

    def __init__(self, duration_s: float | None) -> None:
        self._counts: dict[int, dict[str, int]] = {}
        self.history = History(duration_s)

    def take(self, fact: Fact) -> History:
        """Add the counts of a traffic record; return the gateway's history."""
        second = fact["second"]
        self.history.put(second, SourceReading(fact["monotonic_ns"]))
        counts = {name: fact[name] for name in COUNTS if fact.get(name) is not None}
        counts_before = self._counts.get(second, {})
        self._counts[second] = sum_by_name([counts_before, counts])
        return self.history

    def row(self, second: int) -> dict[str, Any]:
        """Return the second's counts and rates; empty if the gateway has not reported it."""
        interval = self.history.interval_ending(second)
        if interval is None:
            return {}
        counts = self._counts[second]
        return {**counts, **rates_of(counts, interval)}

    def whole(self) -> dict[str, int]:
        """Return the counts of the run."""
        return sum_by_name(self._counts.values())


class Facts:
    """Facts of one run. `duration_s` is known once the run has ended."""

    def __init__(self, duration_s: float | None = None) -> None:
        self._traffic: defaultdict[str, GatewayTraffic] = defaultdict(lambda: GatewayTraffic(duration_s))
        self._cpu: defaultdict[str, History] = defaultdict(lambda: History(duration_s))
        self._meters = PlacedMeters()

    @property
    def open_from(self) -> int:
        """The slowest gateway's last second so far, of which more records may come; -1 before there is one."""
        return min((traffic.history.last for traffic in self._traffic.values()), default=-1)

    def take(self, facts: Iterable[Fact]) -> set[int] | None:
        """Add facts; return the seconds whose row may have changed, None if any row may have."""
        readings: list[Fact] = []
        changed: set[int] = set()
        previous_last = self._last
        for fact in facts:
            if fact["kind"] == THROUGHPUT:
                readings.append(fact)
            else:
                changed.update(self._take(fact))
        if self._meters.place(readings):
            return None
        last = self._last
        changed.update(self._meters.second_of(reading, last) for reading in readings)
        if last > previous_last:
            later_seconds = self._meters.seconds_after(previous_last)
            if later_seconds:
                changed.add(previous_last)  # their readings counted in its row until now
                changed.update(min(second, last) for second in later_seconds)
        return changed

    def row(self, second: int) -> dict[str, Any]:
        """Return the second's counts, rates and cores; a figure that is not known is absent."""
        counts = sum_by_name(traffic.row(second) for traffic in self._traffic.values())
        intervals = {source: history.interval_ending(second) for source, history in self._cpu.items()}
        with_rates = {
            source: interval for source, interval in intervals.items() if interval and interval.is_long_enough
        }
        return {**counts, **self._meters.rates(second, self._last), **_cores(with_rates)}

    def whole(self) -> dict[str, Any]:
        """Return the run's counts and cores. Its rates are run.json's, which are exact to the nanosecond."""
        counts = sum_by_name(traffic.whole() for traffic in self._traffic.values())
        intervals = {source: history.whole_interval() for source, history in self._cpu.items()}
        with_length = {
            source: interval for source, interval in intervals.items() if interval and interval.length_ns > 0
        }
        return {**counts, **self._meters.whole(), **_cores(with_length)}

    @property
    def _last(self) -> int:
        """The last second of the run so far."""
        return max((traffic.history.last for traffic in self._traffic.values()), default=-1)

    def _take(self, fact: Fact) -> Iterator[int]:
        """Add a fact; yield the seconds that it changes: its own, and the next, which grows from this reading."""
        second = fact["second"]
        source = fact["source"]
        if fact["kind"] == TRAFFIC:
            self._meters.note_second_end(source, second, fact["wall_ns"])
            history = self._traffic[source].take(fact)
        else:
            history = self._cpu[source]
            history.put(second, SourceReading(fact["monotonic_ns"], fact["cpu_s"]))
        yield second
        next_second = history.after(second)
        if next_second is not None:
            yield next_second


def _cores(interval_by_source: dict[str, SourceInterval]) -> dict[str, float]:
    """Return cores in use by role: the sum over its sources."""
    named = [(f"{role_of(source)}_cpu_cores", interval.cores) for source, interval in interval_by_source.items()]
    return sum_by_name({name: cores} for name, cores in named)


@dataclass
class ClockStart:
    """When one gateway's clock started, by its traffic records. Those of its latest second may be early."""

    last: int
    """The gateway's latest second so far."""
    by_last_ns: int
    """The earliest start by the records of that second."""
    by_whole_ns: int | None = None
    """The earliest start by the records of the seconds before; None without any."""

    def take(self, second: int, start_ns: int) -> None:
        """Add the start by a record of this second."""
        if second == self.last:
            self.by_last_ns = min(self.by_last_ns, start_ns)
            return
        whole_ns = start_ns
        if second > self.last:
            whole_ns = self.by_last_ns
            self.last = second
            self.by_last_ns = start_ns
        self.by_whole_ns = whole_ns if self.by_whole_ns is None else min(self.by_whole_ns, whole_ns)


class PlacedMeters:
    """Meter readings by second of the gateway's clock.

    Engine and gateway read the meters. The reporter, perhaps on a third host, stamps the readings, so these hosts share
    only wall clocks. A reading belongs to the second in which it was stamped. Clocks that disagree by less than a
    second move a reading by one second at most.

    The start of the gateway's clock follows from traffic records. A gateway reports a second's traffic when that second
    is over, so its clock started `second + 1` seconds before such a record. A record may be late, so the earliest start
    counts. Only a gateway's last record may be early, since the run may end within its second: last records count only
    if there are no others.
    """

    def __init__(self) -> None:
        self._clock_starts: dict[str, ClockStart] = {}
        self._start_ns: int | None = None
        self._facts: list[Fact] = []
        self._placed: defaultdict[int, list[Fact]] = defaultdict(list)

    def note_second_end(self, source: str, second: int, wall_ns: int) -> None:
        """Note when a gateway reported this second's traffic, which is when the second was over."""
        start_ns = wall_ns - (second + 1) * NS_PER_S
        clock_start = self._clock_starts.get(source)
        if clock_start is None:
            self._clock_starts[source] = ClockStart(second, start_ns)
        else:
            clock_start.take(second, start_ns)

    def place(self, readings: list[Fact]) -> bool:
        """Place these readings. Returns True if the clock's start has moved, and moved readings with it."""
        start_ns = self._earliest_start()
        moved = start_ns != self._start_ns
        self._facts += readings
        if moved:
            self._start_ns = start_ns
            self._placed.clear()
        to_place = self._facts if moved else readings
        if start_ns is not None:
            for fact in to_place:
                self._placed[(fact["wall_ns"] - start_ns) // NS_PER_S].append(fact)
        return moved and bool(self._facts)

    def seconds_after(self, second: int) -> list[int]:
        """Return the later seconds in which readings were stamped."""
        return [placed for placed in self._placed if placed > second]

    def second_of(self, fact: Fact, last: int) -> int:
        """Return the second of a reading, at most `last`; -1 while the clock's start is unknown."""
        if self._start_ns is None:
            return -1
        second = (fact["wall_ns"] - self._start_ns) // NS_PER_S
        return min(max(second, 0), last)

    def rates(self, second: int, last: int) -> dict[str, float]:
        """Return the sum over sources of the mean of each source's readings, by meter.

        Readings outside the run's seconds count in the first or the last one.
        """
        return _means(self._readings(second, last))

    def whole(self) -> dict[str, float]:
        """Return these sums over the whole run; empty while the clock's start is unknown."""
        return {} if self._start_ns is None else _means(self._facts)

    def _readings(self, second: int, last: int) -> list[Fact]:
        """Return the readings of a second. Those outside the run's seconds count in the first or the last one."""
        if second > last:
            return []
        if second not in {0, last}:
            return self._placed.get(second, [])
        facts: list[Fact] = []
        for placed, facts_there in self._placed.items():
            nearest = min(max(placed, 0), last)
            if nearest == second:
                facts += facts_there
        return facts

    def _earliest_start(self) -> int | None:
        """Return the clock's start; None while no gateway has reported."""
        whole_seconds: list[int] = []
        last_seconds: list[int] = []
        for clock_start in self._clock_starts.values():
            last_seconds.append(clock_start.by_last_ns)
            if clock_start.by_whole_ns is not None:
                whole_seconds.append(clock_start.by_whole_ns)
        starts_that_count = whole_seconds or last_seconds
        return min(starts_that_count, default=None)


def _means(facts: Iterable[Fact]) -> dict[str, float]:
    """Return the sum over sources of the mean of each source's readings, by the meter's figure."""
    rates: defaultdict[int, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        rates[fact["meter"]][fact["source"]].append(fact["rate_per_s"])
    figures: dict[str, float] = {}
    for meter, figure in METERS.items():
        if meter in rates:
            figures[figure] = sum(sum(readings) / len(readings) for readings in rates[meter].values())
    return figures
