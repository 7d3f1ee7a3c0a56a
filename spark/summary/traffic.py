"""One gateway's counts of each second."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from spark.summary.columns import RATE
from spark.summary.columns import TRAFFIC as COUNTED
from spark.summary.history import NS_PER_S, SHORTEST_INTERVAL_S, History, Reading


class Traffic:
    def __init__(self, duration_s: float | None) -> None:
        self._counts: defaultdict[int, list[int]] = defaultdict(lambda: [0] * len(COUNTED))
        self._history = History(duration_s)

    @property
    def last(self) -> int:
        """-1 before there is one."""
        return -1 if self._history.last is None else self._history.last

    def take(self, fact: dict[str, Any]) -> History:
        second = fact["second"]
        self._history.put(second, Reading(fact["monotonic_ns"]))
        self._counts[second] = [n + fact[name] for n, name in zip(self._counts[second], COUNTED, strict=True)]
        return self._history

    def row(self, second: int) -> dict[str, Any]:
        """The last second is seldom a whole one: its rate is over the part of it that there was."""
        length = self._history.grown(second)
        if length is None:
            return {}
        row: dict[str, Any] = dict(zip(COUNTED, self._counts[second], strict=True))
        length_s = min(length.monotonic_ns / NS_PER_S, 1.0) if second == self.last else 1.0
        if length_s >= SHORTEST_INTERVAL_S:
            row[RATE] = row["orders_sent"] / length_s
        return row

    def whole(self) -> dict[str, int]:
        """Of the run."""
        return dict(zip(COUNTED, map(sum, zip(*self._counts.values(), strict=True)), strict=True))
