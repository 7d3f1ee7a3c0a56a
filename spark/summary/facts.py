"""What is known of each second, and of the run, but its completion times.

Whatever order records are taken in, the same set of them says the same. The last second is seldom a whole one: its rate
and cores are over the part of it that there was, and not there where that was shorter than SHORTEST_INTERVAL_S.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from exchange.instances import role_of
from exchange.records import THROUGHPUT, TRAFFIC
from spark.summary.columns import CPU
from spark.summary.history import NS_PER_S, SHORTEST_INTERVAL_S, History, Reading
from spark.summary.meters import PlacedMeters
from spark.summary.traffic import Traffic

Fact = dict[str, Any]
"""The payload of a record of traffic, process or throughput, beside when, of which kind and by whom it was said."""


class Facts:
    """Of one run, whose length is known once it has ended."""

    def __init__(self, duration_s: float | None = None) -> None:
        self._traffic: defaultdict[str, Traffic] = defaultdict(lambda: Traffic(duration_s))
        self._cpu: defaultdict[str, History] = defaultdict(lambda: History(duration_s))
        self._meters = PlacedMeters()

    @property
    def open_from(self) -> int:
        """The first second of which a gateway may have more to say."""
        return min((traffic.last for traffic in self._traffic.values()), default=-1)

    def take(self, facts: Iterable[Fact]) -> set[int] | None:
        """The seconds about which something else may be known now; None where it may be any."""
        fresh: list[Fact] = []
        told: set[int] = set()
        for fact in facts:
            if fact["kind"] == THROUGHPUT:
                fresh.append(fact)
            else:
                told.update(self._take(fact))
        if self._meters.place(fresh):
            return None
        last = self._last
        return told | {self._meters.second_of(fact, last) for fact in fresh}

    def row(self, second: int) -> dict[str, Any]:
        """Counts, rates and cores; what is not known is not in it."""
        of_gateways = [row for traffic in self._traffic.values() if (row := traffic.row(second))]
        grown = {source: history.grown(second) for source, history in self._cpu.items()}
        long_enough = {s: used for s, used in grown.items() if used and _s(used) >= SHORTEST_INTERVAL_S}
        return {**added(of_gateways), **self._meters.rates(second, self._last), **_cores(long_enough)}

    def whole(self) -> dict[str, Any]:
        """The same of the run, but for rates, which run.json has to the nanosecond."""
        of_gateways = [traffic.whole() for traffic in self._traffic.values()]
        used = {source: whole for source, history in self._cpu.items() if (whole := history.whole()) and _s(whole) > 0}
        return {**added(of_gateways), **self._meters.whole(), **_cores(used)}

    @property
    def _last(self) -> int:
        """Second of the run."""
        return max((traffic.last for traffic in self._traffic.values()), default=-1)

    def _take(self, fact: Fact) -> Iterator[int]:
        """The seconds that it changes: its own, and the next, whose reading is seen against this one's."""
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


def added(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """By name, what the rows have of it together."""
    total: dict[str, Any] = {}
    for row in rows:
        total |= {name: value + total.get(name, 0) for name, value in row.items()}
    return total


def _cores(used: dict[str, Reading]) -> dict[str, float]:
    """By role: what CPU time grew by, per second of the source's own clock."""
    named = [(f"{role_of(source)}_cpu_cores", reading.cpu_s / _s(reading)) for source, reading in used.items()]
    return added({name: cores} for name, cores in named if name in CPU)


def _s(passed: Reading) -> float:
    return passed.monotonic_ns / NS_PER_S
