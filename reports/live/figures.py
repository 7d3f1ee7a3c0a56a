"""The figures of a run's last minute, from its statistics records."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from exchange.instances import role_of
from exchange.measurements import LogBuckets
from exchange.records import COMPLETION, PROCESS, TRAFFIC
from exchange.seconds import History, Reading, Shares, is_analysed, rates_of
from reports.formats import is_told

SECONDS = 60
NAMES = {"orders_per_s": "sent", "answered_orders_per_s": "answered", "answers_per_s": "answers"}
"""The figure's name, by the name of its rate."""


class Figures:
    """Minutes by name: rates a second, times in us such as "due p50", cores in use by role; sums over all gateways."""

    def __init__(self, gateways: int = 1) -> None:
        self.minutes: defaultdict[str, Minute] = defaultdict(Minute)
        self._gateways = gateways
        self._newest: dict[str, int] = {}
        self._traffic: defaultdict[str, History] = defaultdict(History)
        self._cpu: defaultdict[str, History] = defaultdict(History)
        self._shares: defaultdict[str, Shares[float]] = defaultdict(Shares)
        self._buckets: defaultdict[str, Shares[LogBuckets]] = defaultdict(Shares)

    @property
    def newest(self) -> int:
        """The last second that every running gateway has reported; -1 before there is one."""
        if len(self._newest) < self._gateways:
            return -1
        front = max(self._newest.values())
        return min(second for second in self._newest.values() if second >= front - 1)

    def take(self, record: dict[str, Any]) -> None:
        """Add one record of the spool; kinds that are not drawn are ignored."""
        kind, source, payload = record["kind"], record["source"], record["payload"]
        if kind == TRAFFIC:
            self._take_traffic(source, payload, record["monotonic_ns"])
        elif kind == COMPLETION and is_analysed(payload):
            self._take_completion(source, payload)
        elif kind == PROCESS:
            self.take_cpu(source, payload["second"], Reading(record["monotonic_ns"], payload["cpu_s"]))

    def _take_traffic(self, source: str, payload: dict[str, Any], monotonic_ns: int) -> None:
        second = payload["second"]
        grown = self._traffic[source].put(second, Reading(monotonic_ns))
        for name, rate in rates_of(payload, grown).items():
            self._newest[source] = second
            self._add(NAMES[name], second, source, rate)

    def _add(self, name: str, second: int, source: str, share: float) -> None:
        if shares := self._shares[name].put(second, source, share):
            self.minutes[name].put(second, sum(shares))

    def _take_completion(self, source: str, payload: dict[str, Any]) -> None:
        second, clock, buckets = payload["second"], payload["clock"], LogBuckets()
        for share in self._buckets[clock].put(second, source, LogBuckets.from_sparse(payload)):
            buckets.merge(share)
        if not buckets.count:
            return
        self.minutes[f"{clock} p50"].put(second, buckets.percentile_ns(50) / 1e3)
        if is_told("p99", buckets.count):
            self.minutes[f"{clock} p99"].put(second, buckets.percentile_ns(99) / 1e3)
        self.minutes[f"{clock} max"].put(second, buckets.max_ns / 1e3)

    def take_cpu(self, component: str, second: int, reading: Reading) -> None:
        """Add the CPU `reading` that closes this second; CPU seconds count from the start of the component's clock."""
        grown = self._cpu[component].put(second, reading)
        if grown.is_long_enough:
            self._add(role_of(component), second, component, grown.cores)


class Minute:
    """One figure over the last minute: a value by second of the run, or None if it was not measured."""

    def __init__(self) -> None:
        self._values: dict[int, float] = {}

    def put(self, second: int, value: float) -> None:
        """A newer value of a second replaces the older one."""
        self._values[second] = value
        for old in [known for known in self._values if known <= second - SECONDS]:
            del self._values[old]

    def until(self, newest: int, seconds: int = SECONDS) -> list[float | None]:
        """The values of the given number of seconds; the last is second `newest`."""
        return [self._values.get(second) for second in range(newest - seconds + 1, newest + 1)]
