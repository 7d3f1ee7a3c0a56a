"""Meters, which are stamped by wall clock, put into the seconds of the gateway's clock as spark.summary does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from spark.live.history import NS_PER_S
from spark.summary import METERS

Fact = dict[str, Any]


class PlacedMeters:
    """The clock's start is the earliest that a traffic record tells of; the last second's is asked only if alone."""

    def __init__(self) -> None:
        self._starts: dict[int, int] = {}
        self._start_ns: int | None = None
        self._facts: list[Fact] = []
        self._placed: defaultdict[int, list[Fact]] = defaultdict(list)

    def clock_says(self, second: int, wall_ns: int) -> None:
        """A traffic record of this second was said at this moment: the second is over."""
        start_ns = wall_ns - (second + 1) * NS_PER_S
        self._starts[second] = min(start_ns, self._starts.get(second, start_ns))

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
        """The mean of each meter's readings; what lies outside of the run's seconds is in the first or last one."""
        rates: defaultdict[int, list[float]] = defaultdict(list)
        for fact in self._readings(second, last):
            rates[fact["meter"]].append(fact["rate_per_s"])
        return {name: sum(rates[meter]) / len(rates[meter]) for meter, name in METERS.items() if meter in rates}

    def _readings(self, second: int, last: int) -> Iterator[Fact]:
        if second not in {0, last}:
            return iter(self._placed.get(second, ()))
        held = [placed for placed in self._placed if min(max(placed, 0), last) == second]
        return (fact for placed in held for fact in self._placed[placed])

    def _earliest_start(self) -> int | None:
        if not self._starts:
            return None
        last = max(self._starts)
        return min((start for second, start in self._starts.items() if second < last), default=self._starts[last])
