"""The figures of a run's last minute, from its statistics records."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from exchange.instances import role_of
from exchange.measurements import LogBuckets
from exchange.records import COMPLETION, PROCESS, TRAFFIC
from reports.live.history import History
from reports.live.interval import Intervals, Reading
from reports.live.shares import Shares

SHORTEST_S = 0.5
"""The moment before a run's end is no second: nothing is said of it."""
RATES = {"sent": "orders_sent", "answered": "orders_answered", "answers": "messages_received"}
"""A figure's name here, and in a traffic record."""


class Figures:
    """Histories by name: rates a second, times in us as "due p50", cores in use by role; of all gateways together."""

    def __init__(self, gateways: int = 1) -> None:
        self.histories: defaultdict[str, History] = defaultdict(History)
        self._gateways = gateways
        self._newest: dict[str, int] = {}
        self._traffic: defaultdict[str, Intervals] = defaultdict(Intervals)
        self._cpu: defaultdict[str, Intervals] = defaultdict(Intervals)
        self._shares: defaultdict[str, Shares[float]] = defaultdict(Shares)
        self._buckets: defaultdict[str, Shares[LogBuckets]] = defaultdict(Shares)

    @property
    def newest(self) -> int:
        """The last second whose traffic is known, of every gateway that has not ended; -1 before there is one."""
        if len(self._newest) < self._gateways:
            return -1
        front = max(self._newest.values())
        return min(second for second in self._newest.values() if second >= front - 1)

    def take(self, record: dict[str, Any]) -> None:
        """One record of the spool; kinds that are not drawn are passed over."""
        kind, source, payload = record["kind"], record["source"], record["payload"]
        if kind == TRAFFIC:
            self._take_traffic(source, payload, record["monotonic_ns"])
        elif kind == COMPLETION and not payload["last_order"]:
            self._take_completion(source, payload)
        elif kind == PROCESS:
            self.take_cpu(source, Reading(payload["second"], record["monotonic_ns"], payload["cpu_s"]))

    def _take_traffic(self, source: str, payload: dict[str, Any], told_ns: int) -> None:
        second = payload["second"]
        length_s, _ = self._traffic[source].until(Reading(second, told_ns))
        if length_s >= SHORTEST_S:
            self._newest[source] = second
            for name, counted in RATES.items():
                self._add(name, second, source, payload[counted] / length_s)

    def _add(self, name: str, second: int, source: str, share: float) -> None:
        if shares := self._shares[name].put(second, source, share):
            self.histories[name].put(second, sum(shares))

    def _take_completion(self, source: str, payload: dict[str, Any]) -> None:
        second, clock, buckets = payload["second"], payload["clock"], LogBuckets()
        for share in self._buckets[clock].put(second, source, LogBuckets.from_sparse(payload)):
            buckets.merge(share)
        if not buckets.count:
            return
        for percent in (50, 99):
            self.histories[f"{clock} p{percent}"].put(second, buckets.percentile_ns(percent) / 1e3)
        self.histories[f"{clock} max"].put(second, buckets.max_ns / 1e3)

    def take_cpu(self, component: str, reading: Reading) -> None:
        """CPU seconds since the clock started."""
        length_s, used_s = self._cpu[component].until(reading)
        if length_s >= SHORTEST_S:
            self._add(role_of(component), reading.second, component, used_s / length_s)
