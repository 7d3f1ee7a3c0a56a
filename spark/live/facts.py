"""What is known of each second but its completion times, and which seconds a batch changed.

The definitions are those of spark.summary, over a few numbers a second; whatever order notes are taken in, the
same set of them says the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from exchange.instances import role_of
from exchange.records import THROUGHPUT, TRAFFIC
from spark.live.history import NS_PER_S, History, Reading
from spark.live.meters import PlacedMeters
from spark.live.note import Note
from spark.live.traffic import Traffic
from spark.summary import CPU, SHORTEST_INTERVAL_S

Fact = dict[str, Any]


class Facts:
    def __init__(self) -> None:
        self.known: set[int] = set()
        """Seconds that some source has spoken of."""
        self._ends: dict[str, int] = {}
        self._traffic: defaultdict[str, Traffic] = defaultdict(Traffic)
        self._cpu: defaultdict[str, History] = defaultdict(History)
        self._meters = PlacedMeters()

    @property
    def ended(self) -> bool:
        """Whether every reporter has closed its part."""
        return bool(self._ends) and len(self._ends) >= max(self._ends.values())

    def is_final(self, second: int) -> bool:
        """Nothing more of it is to come, unless late: a later second's traffic is known of each gateway, or all is."""
        return self.ended or second < self._open_from

    def take(self, note: Note) -> set[int]:
        """The seconds about which something else may be known now."""
        open_from = self._open_from
        fresh = [fact for fact in note.facts if fact["kind"] == THROUGHPUT]
        told = {second for fact in note.facts if fact["kind"] != THROUGHPUT for second in self._take(fact)}
        self.known |= told | set(note.timed)
        self._ends |= note.ends
        moved = self._meters.place(fresh)
        if moved:
            return set(self.known)
        open_from = min(open_from, self._open_from)
        read = {self._meters.second_of(fact, self._last) for fact in fresh}
        return (told | read | set(note.timed) | {second for second in self.known if second >= open_from}) & self.known

    def row(self, second: int) -> dict[str, Any]:
        """Counts, rates and CPU; what is not known is not in it."""
        of_gateways = [row for traffic in self._traffic.values() if (row := traffic.row(second))]
        return {**_added(of_gateways), **self._meters.rates(second, self._last), **self._cpu_of(second)}

    @property
    def _last(self) -> int:
        """Second of the run."""
        return max((traffic.last for traffic in self._traffic.values()), default=-1)

    @property
    def _open_from(self) -> int:
        """The first second of which a gateway may have more to say."""
        return min((traffic.last for traffic in self._traffic.values()), default=-1)

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

    def _cpu_of(self, second: int) -> dict[str, float]:
        grown = [(f"{role_of(source)}_cpu_cores", history.grown(second)) for source, history in self._cpu.items()]
        return _added(
            {name: used.cpu_s / (used.monotonic_ns / NS_PER_S)}
            for name, used in grown
            if used and name in CPU and used.monotonic_ns >= SHORTEST_INTERVAL_S * NS_PER_S
        )


def _added(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """By name, what the rows have of it together."""
    total: dict[str, Any] = {}
    for row in rows:
        total |= {name: value + total.get(name, 0) for name, value in row.items()}
    return total
