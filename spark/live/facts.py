"""What is known of each second but its completion times, and which seconds a batch changed.

The definitions are those of spark.summary, over a few numbers a second; whatever order notes are taken in, the
same set of them says the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from exchange.records import THROUGHPUT, TRAFFIC
from spark.live.history import NS_PER_S, History, Reading
from spark.live.meters import PlacedMeters
from spark.live.note import Note
from spark.summary import CPU, RATE, SHORTEST_INTERVAL_S
from spark.summary import TRAFFIC as COUNTED

Fact = dict[str, Any]


class Facts:
    def __init__(self) -> None:
        self.ended = False
        self.known: set[int] = set()
        """Seconds that some source has spoken of."""
        self._counts: defaultdict[int, list[int]] = defaultdict(lambda: [0] * len(COUNTED))
        self._traffic = History()
        self._cpu: defaultdict[str, History] = defaultdict(History)
        self._meters = PlacedMeters()

    def is_final(self, second: int) -> bool:
        """Nothing more of it is to come, unless late: a later second's traffic is known, or the run is over."""
        return self.ended or second < self._last

    def take(self, note: Note) -> set[int]:
        """The seconds about which something else may be known now."""
        open_from = self._last
        fresh = [fact for fact in note.facts if fact["kind"] == THROUGHPUT]
        told = {second for fact in note.facts if fact["kind"] != THROUGHPUT for second in self._take(fact)}
        self.known |= told | set(note.timed)
        self.ended |= note.ended
        moved = self._meters.place(fresh)
        if moved:
            return set(self.known)
        read = {self._meters.second_of(fact, self._last) for fact in fresh}
        return (told | read | set(note.timed) | {second for second in self.known if second >= open_from}) & self.known

    def row(self, second: int) -> dict[str, Any]:
        """Counts, rates and CPU; what is not known is not in it."""
        return {**self._traffic_of(second), **self._meters.rates(second, self._last), **self._cpu_of(second)}

    @property
    def _last(self) -> int:
        return -1 if self._traffic.last is None else self._traffic.last

    def _take(self, fact: Fact) -> Iterator[int]:
        """The seconds that it changes: its own, and the next, whose reading is seen against this one's."""
        second, is_traffic = fact["second"], fact["kind"] == TRAFFIC
        history = self._traffic if is_traffic else self._cpu[fact["source"]]
        history.put(second, Reading(fact["monotonic_ns"], fact.get("cpu_s", 0.0)))
        if is_traffic:
            self._meters.clock_says(second, fact["wall_ns"])
            self._counts[second] = [n + fact[name] for n, name in zip(self._counts[second], COUNTED, strict=True)]
        yield second
        if (after := history.after(second)) is not None:
            yield after

    def _traffic_of(self, second: int) -> dict[str, Any]:
        """The last second is seldom a whole one: its rate is over the part of it that there was."""
        length = self._traffic.grown(second)
        if length is None:
            return {}
        row: dict[str, Any] = dict(zip(COUNTED, self._counts[second], strict=True))
        length_s = min(length.monotonic_ns / NS_PER_S, 1.0) if second == self._last else 1.0
        if length_s >= SHORTEST_INTERVAL_S:
            row[RATE] = row["orders_sent"] / length_s
        return row

    def _cpu_of(self, second: int) -> dict[str, float]:
        grown = {f"{source}_cpu_cores": history.grown(second) for source, history in self._cpu.items()}
        return {
            name: used.cpu_s / (used.monotonic_ns / NS_PER_S)
            for name, used in grown.items()
            if used and name in CPU and used.monotonic_ns >= SHORTEST_INTERVAL_S * NS_PER_S
        }
