"""The open loop: when each order may go. Absolute times, fixed at the start; falling behind moves none of them."""

from __future__ import annotations

from exchange.settings import RunSettings
from gateway.due_times import NEVER_NS, Longs
from gateway.schedule import Schedule, due_times_of


class Pacer:
    """Orders go when they are due, in whole packs. Without a schedule all are due at once."""

    def __init__(self, schedule: Schedule | None, packing: int, order_limit: int) -> None:
        self._schedule = schedule
        self._packing, self._order_limit = packing, order_limit
        self._first_pack_ns = 0

    @classmethod
    def of(cls, settings: RunSettings) -> Pacer:
        due_times = due_times_of(settings)
        return cls(Schedule(due_times) if due_times else None, settings.packing, settings.order_limit)

    @property
    def scheduled(self) -> bool:
        return self._schedule is not None

    @property
    def at_once(self) -> int:
        """The most orders that are due at the same time; without a schedule, 1."""
        return self._schedule.at_once if self._schedule is not None else 1

    def start(self, now_ns: int) -> None:
        if self._schedule is not None:
            self._schedule.start(now_ns)
            self._first_pack_ns = self.next_due_ns(0)

    def due_ns(self, order_id: int) -> int:
        """Of an order that may go soon, or that went a short while ago; 0 without a schedule."""
        return self._schedule.due_ns(order_id) if self._schedule is not None else 0

    def due_times(self, first_id: int, count: int) -> Longs | None:
        """Those of a batch; None without a schedule."""
        return self._schedule.span(first_id, count) if self._schedule is not None else None

    def due_by(self, now_ns: int, prepared: int) -> int:
        """How many orders may have gone by now, a batch beyond `prepared` at most: whole packs, and the last one."""
        if self._schedule is None:
            return self._order_limit
        due = min(self._schedule.due_by(now_ns, prepared), self._order_limit)
        return due if due == self._order_limit else due - due % self._packing

    def next_due_ns(self, sent: int) -> int:
        """When the next pack after `sent` orders is complete, and so may go."""
        if sent >= self._order_limit:
            return NEVER_NS
        return self.due_ns(min(sent + self._packing, self._order_limit))

    def length_s(self, sent: int) -> float | None:
        """From when the first pack may go to when the last of `sent` orders may; None without a schedule."""
        if self._schedule is None or not sent:
            return None
        return max(self.due_ns(sent) - self._first_pack_ns, 0) / 1e9
