"""The figures of a run's last minute, from its statistics records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from exchange.measurements import CLOCKS, LogBuckets
from exchange.records import COMPLETION, PROCESS, TRAFFIC
from exchange.second_columns import COLUMNS, Unit
from exchange.second_figures import Fact, Facts
from exchange.seconds import is_analysed
from exchange_simulation.reports.formats.few_orders import has_enough_orders

SECONDS = 60


def _figures_of(clock: str) -> list[str]:
    """Return the figures of this clock's times that a live view shows. For example: p50, p99, max"""
    figures = []
    for column in COLUMNS:
        if column.unit is Unit.TIME and column.live_title:
            name = column.figure.format(clock=clock)
            if name.startswith(f"{clock}_"):
                figures.append(name.removeprefix(f"{clock}_").removesuffix("_us"))
    return figures


FIGURES_OF_CLOCK = {clock: _figures_of(clock) for clock in CLOCKS}


class Figures:
    """The last minute of each figure, by the figure's name in a second's row, such as orders_per_s or due_p50_us.

    Counts, rates and completion times are those of all gateways together.
    """

    def __init__(self, gateways: int = 1) -> None:
        self.minutes: defaultdict[str, Minute] = defaultdict(Minute)
        self._gateways = gateways
        self._newest_by_gateway: dict[str, int] = {}
        self._facts = Facts()
        self._buckets: defaultdict[tuple[int, str], LogBuckets] = defaultdict(LogBuckets)
        """By second and clock."""

    @property
    def newest(self) -> int:
        """Return the last second that every running gateway has reported; -1 before there is one.

        A gateway that is more than a second behind another has ended.
        """
        if len(self._newest_by_gateway) < self._gateways:
            return -1
        newest_seconds = self._newest_by_gateway.values()
        return min(second for second in newest_seconds if second >= max(newest_seconds) - 1)

    def take(self, records: Iterable[dict[str, Any]]) -> None:
        """Add records of the spool; kinds that are not drawn are ignored."""
        facts: list[Fact] = []
        for record in records:
            kind = record["kind"]
            payload = record["payload"]
            if kind in (TRAFFIC, PROCESS):
                facts.append({**record, **payload})
            elif kind == COMPLETION and is_analysed(payload):
                self._take_completion(payload)
        self._take_facts(facts)

    def _take_facts(self, facts: list[Fact]) -> None:
        changed_seconds = self._facts.take(facts)
        assert changed_seconds is not None, "only meter readings change rows of any second, and none are taken here"
        rows = {second: self._facts.row(second) for second in sorted(changed_seconds)}
        for second, row in rows.items():
            for name, value in row.items():
                self.minutes[name].put(second, value)
        for fact in facts:
            if fact["kind"] == TRAFFIC and "orders_per_s" in rows[fact["second"]]:
                self._newest_by_gateway[fact["source"]] = fact["second"]

    def _take_completion(self, payload: dict[str, Any]) -> None:
        second = payload["second"]
        clock = payload["clock"]
        buckets = self._buckets[second, clock]
        buckets.merge(LogBuckets.from_sparse(payload))
        figures_us = buckets.figures_us()
        for figure in FIGURES_OF_CLOCK.get(clock, ()):
            # The p50 is drawn whatever the number of orders: a gap would look as if none had been answered.
            if figure == "p50" or has_enough_orders(figure, buckets.count):
                self.minutes[f"{clock}_{figure}_us"].put(second, figures_us[figure])
        for bucket_second, bucket_clock in list(self._buckets):
            if bucket_second <= second - SECONDS:
                del self._buckets[bucket_second, bucket_clock]


class Minute:
    """One figure over the last minute: a value by second of the run, or None if it was not measured."""

    def __init__(self) -> None:
        self._values: dict[int, float] = {}

    def put(self, second: int, value: float) -> None:
        """Set a second's value; a newer value replaces the older one."""
        self._values[second] = value
        for other in list(self._values):
            if other <= second - SECONDS:
                del self._values[other]

    def until(self, newest: int, seconds: int = SECONDS) -> list[float | None]:
        """Return the values of the given number of seconds; the last is second `newest`."""
        return [self._values.get(second) for second in range(newest - seconds + 1, newest + 1)]
