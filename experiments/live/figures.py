"""The figures of a run's last minute, from its statistics records."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from exchange.measurements import LogBuckets
from exchange.records import COMPLETION, PROCESS, TRAFFIC
from experiments.live.history import History
from experiments.live.interval import Intervals, Reading

SHORTEST_S = 0.5
"""The moment before a run's end is no second: nothing is said of it."""
RATES = {"sent": "orders_sent", "answered": "orders_answered", "answers": "messages_received"}
"""A figure's name here, and in a traffic record."""


class Figures:
    """Histories by name: rates a second, times in us as "due p50", cores in use by component."""

    def __init__(self) -> None:
        self.histories: defaultdict[str, History] = defaultdict(History)
        self.newest = -1
        """The last second whose traffic is known."""
        self._traffic = Intervals()
        self._cpu: defaultdict[str, Intervals] = defaultdict(Intervals)

    def take(self, record: dict[str, Any]) -> None:
        """One record of the spool; kinds that are not drawn are passed over."""
        kind, payload = record["kind"], record["payload"]
        if kind == TRAFFIC:
            self._take_traffic(payload, record["monotonic_ns"])
        elif kind == COMPLETION and not payload["last_order"]:
            self._take_completion(payload)
        elif kind == PROCESS:
            reading = Reading(payload["second"], record["monotonic_ns"], payload["cpu_s"])
            self.take_cpu(record["source"], reading)

    def _take_traffic(self, payload: dict[str, Any], told_ns: int) -> None:
        second = payload["second"]
        length_s, _ = self._traffic.until(Reading(second, told_ns))
        if length_s >= SHORTEST_S:
            self.newest = second
            for name, counted in RATES.items():
                self.histories[name].put(second, payload[counted] / length_s)

    def _take_completion(self, payload: dict[str, Any]) -> None:
        buckets, second, clock = LogBuckets.from_sparse(payload), payload["second"], payload["clock"]
        for percent in (50, 99):
            self.histories[f"{clock} p{percent}"].put(second, buckets.percentile_ns(percent) / 1e3)
        self.histories[f"{clock} max"].put(second, buckets.max_ns / 1e3)

    def take_cpu(self, component: str, reading: Reading) -> None:
        """CPU seconds since the clock started."""
        length_s, used_s = self._cpu[component].until(reading)
        if length_s >= SHORTEST_S:
            self.histories[component].put(reading.second, used_s / length_s)
