"""Places meter readings in the seconds of the gateway's clock, by wall clock.

Engine and gateway read the meters; the reporter, perhaps on a third host, stamps the readings. So they share nothing
but wall clocks. A reading belongs to the second in which it was stamped; clocks that disagree by less than a second
move it by one second at most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from exchange.seconds import NS_PER_S
from spark.summary.columns import METERS

Fact = dict[str, Any]
"""The payload of a record of traffic, process or throughput, with the record's source, kind, wall_ns, monotonic_ns."""


class PlacedMeters:
    """Meter readings by second. The clock's start is the earliest that the traffic records give.

    The gateway reports a second's traffic when that second is over: the first second began `second + 1` seconds before
    such a record. A record may be late but not early, except a gateway's last one: the run may end within its second.
    So last records count only if there are no others.
    """

    def __init__(self) -> None:
        self._starts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._start_ns: int | None = None
        self._facts: list[Fact] = []
        self._placed: defaultdict[int, list[Fact]] = defaultdict(list)

    def clock_says(self, source: str, second: int, wall_ns: int) -> None:
        """Note that a gateway reported this second's traffic at this moment: the second is over."""
        start_ns, starts = wall_ns - (second + 1) * NS_PER_S, self._starts[source]
        starts[second] = min(start_ns, starts.get(second, start_ns))

    def place(self, fresh: list[Fact]) -> bool:
        """Place these readings; True if the clock's start has moved, which may move any reading to another second."""
        start_ns = self._earliest_start()
        moved = start_ns != self._start_ns
        self._facts += fresh
        if moved:
            self._start_ns = start_ns
            self._placed.clear()
        if start_ns is not None:
            for fact in self._facts if moved else fresh:
                self._placed[(fact["wall_ns"] - start_ns) // NS_PER_S].append(fact)
        return moved

    def second_of(self, fact: Fact, last: int) -> int:
        """The second of a reading, at most `last`; -1 while the clock's start is unknown."""
        if self._start_ns is None:
            return -1
        return min(max((fact["wall_ns"] - self._start_ns) // NS_PER_S, 0), last)

    def rates(self, second: int, last: int) -> dict[str, float]:
        """The sum over sources of the mean of each source's readings, by meter.

        Readings outside the run's seconds count in the first or the last one.
        """
        return _means(self._readings(second, last))

    def whole(self) -> dict[str, float]:
        """The same over the whole run; empty while the clock's start is unknown."""
        return {} if self._start_ns is None else _means(self._facts)

    def _readings(self, second: int, last: int) -> Iterator[Fact]:
        if second not in {0, last}:
            return iter(self._placed.get(second, ()))
        seconds = [placed for placed in self._placed if min(max(placed, 0), last) == second]
        return (fact for placed in seconds for fact in self._placed[placed])

    def _earliest_start(self) -> int | None:
        """None while no gateway has reported."""
        by_gateway = self._starts.values()
        whole = [start for starts in by_gateway for second, start in starts.items() if second < max(starts)]
        return min(whole or [start for starts in by_gateway for start in starts.values()], default=None)


def _means(facts: Iterable[Fact]) -> dict[str, float]:
    rates: defaultdict[int, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        rates[fact["meter"]][fact["source"]].append(fact["rate_per_s"])
    return {name: _sum_of_means(rates[meter].values()) for meter, name in METERS.items() if meter in rates}


def _sum_of_means(by_source: Iterable[list[float]]) -> float:
    return sum(sum(rates) / len(rates) for rates in by_source)
