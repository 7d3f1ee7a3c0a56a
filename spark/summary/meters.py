"""Meters put into the seconds of the gateway's clock, by wall clock.

Meters are read by engine and gateway and stamped by the reporter, perhaps on a third host, so wall clocks are all they
share. A reading belongs to the second in which it was stamped; clocks that disagree by less than a second move it by
one second at most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from spark.summary.columns import METERS
from spark.summary.history import NS_PER_S

Fact = dict[str, Any]


class PlacedMeters:
    """The clock's start is the earliest that a traffic record tells of; a last second's is asked only if all are.

    The gateway reports a second's traffic when that second is over: the first second began `second + 1` seconds before
    such a record. A record can be late, not early; the last one can, since the run may end within its second. Of
    several gateways each may end within a second of its own.
    """

    def __init__(self) -> None:
        self._starts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._start_ns: int | None = None
        self._facts: list[Fact] = []
        self._placed: defaultdict[int, list[Fact]] = defaultdict(list)

    def clock_says(self, source: str, second: int, wall_ns: int) -> None:
        """A gateway's traffic record of this second was said at this moment: the second is over."""
        start_ns, starts = wall_ns - (second + 1) * NS_PER_S, self._starts[source]
        starts[second] = min(start_ns, starts.get(second, start_ns))

    def place(self, fresh: list[Fact]) -> bool:
        """Whether the clock's start is another than it was, so that any second's readings may be others."""
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
        """-1 before there is a clock."""
        if self._start_ns is None:
            return -1
        return min(max((fact["wall_ns"] - self._start_ns) // NS_PER_S, 0), last)

    def rates(self, second: int, last: int) -> dict[str, float]:
        """The mean of each source's readings, and the sum of the means.

        What lies outside of the run's seconds is in the first or last one.
        """
        return _means(self._readings(second, last))

    def whole(self) -> dict[str, float]:
        """The same of the run, once there is a clock."""
        return {} if self._start_ns is None else _means(self._facts)

    def _readings(self, second: int, last: int) -> Iterator[Fact]:
        if second not in {0, last}:
            return iter(self._placed.get(second, ()))
        held = [placed for placed in self._placed if min(max(placed, 0), last) == second]
        return (fact for placed in held for fact in self._placed[placed])

    def _earliest_start(self) -> int | None:
        """None before there is a clock."""
        of_gateways = self._starts.values()
        whole = [start for starts in of_gateways for second, start in starts.items() if second < max(starts)]
        return min(whole or [start for starts in of_gateways for start in starts.values()], default=None)


def _means(facts: Iterable[Fact]) -> dict[str, float]:
    rates: defaultdict[int, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        rates[fact["meter"]][fact["source"]].append(fact["rate_per_s"])
    return {name: _sum_of_means(rates[meter].values()) for meter, name in METERS.items() if meter in rates}


def _sum_of_means(of_sources: Iterable[list[float]]) -> float:
    return sum(sum(rates) / len(rates) for rates in of_sources)
