"""The open loop: it says when each order may go. Due times are fixed at the start, and a delay moves none of them."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from exchange.settings import RunSettings
from gateway.due_times import NEVER_NS, NO_DUE_TIMES, DueTimes, due_times_of
from transports.frames import Longs

BLOCK = 2048
LOOK_AHEAD = 2048
"""The orders of the largest batch."""
WINDOW = 32 * LOOK_AHEAD
"""Due times in memory; at least half of them are before the latest."""


class Schedule:
    """Due times on the gateway's clock, generated in blocks a little ahead of the orders; they never decrease."""

    def __init__(self, due_times: DueTimes) -> None:
        self._source = due_times
        self.at_once = due_times.at_once
        self._due: Longs = np.zeros(WINDOW, np.int64)
        self._times = self._due.data  # reads a value in a third of the time of an array
        self._dropped = self._generated = 0  # due times of orders dropped + 1 to generated are here
        self._start_ns = 0

    def start(self, now_ns: int) -> None:
        """Start the clock: once, before the first question for a due time."""
        self._start_ns = now_ns

    def due_ns(self, order_id: int) -> int:
        return self._times[self._place(order_id)]

    def span(self, first_id: int, count: int) -> Longs:
        """Due times of `count` orders from `first_id` on, at most WINDOW / 2."""
        end = self._place(first_id + count - 1) + 1
        return self._due[end - count : end]

    def due_by(self, now_ns: int, after: int) -> int:
        """The number of orders due. The first `after` are known to be due; at most LOOK_AHEAD more are checked."""
        end = self._place(after + LOOK_AHEAD) + 1
        first = end - LOOK_AHEAD
        for due in (0, 1):  # the usual cases when idle
            if self._times[first + due] > now_ns:
                return after + due
        return after + bisect_right(self._times, now_ns, first + 2, end) - first

    def _place(self, order_id: int) -> int:
        while order_id > self._generated:
            self._generate()
        if order_id <= self._dropped:
            raise LookupError(f"the due time of order {order_id} is no longer in memory")
        return order_id - self._dropped - 1

    def _generate(self) -> None:
        if self._generated - self._dropped == WINDOW:
            self._due[: WINDOW // 2] = self._due[WINDOW // 2 :]
            self._dropped += WINDOW // 2
        at = self._generated - self._dropped
        block = self._due[at : at + BLOCK]
        self._source.write(block, self._generated)
        block += self._start_ns
        self._generated += BLOCK


class Pacer:
    """Says when orders may go: when they are due, in whole packs. Without a schedule all of them may go at once."""

    def __init__(self, schedule: Schedule | None, packing: int, order_limit: int) -> None:
        self._schedule = schedule
        self._packing = packing
        self._order_limit = order_limit
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
        """Due time of an order that may go soon, or that went a short while ago; 0 without a schedule."""
        return self._schedule.due_ns(order_id) if self._schedule is not None else 0

    def due_times(self, first_id: int, count: int) -> Longs:
        """Due times of a batch; NO_DUE_TIMES without a schedule."""
        return self._schedule.span(first_id, count) if self._schedule is not None else NO_DUE_TIMES

    def due_by(self, now_ns: int, prepared: int) -> int:
        """The number of orders that may go by now, at most a batch beyond `prepared`: whole packs and the last pack."""
        if self._schedule is None:
            return self._order_limit
        due = min(self._schedule.due_by(now_ns, prepared), self._order_limit)
        return due if due == self._order_limit else due - due % self._packing

    def next_due_ns(self, sent: int) -> int:
        """The time at which the next pack after `sent` orders is complete and may go."""
        if sent >= self._order_limit:
            return NEVER_NS
        return self.due_ns(min(sent + self._packing, self._order_limit))

    def length_s(self, sent: int) -> float | None:
        """Time from when the first pack may go to when the last of `sent` orders may; None without a schedule."""
        if self._schedule is None or not sent:
            return None
        return max(self.due_ns(sent) - self._first_pack_ns, 0) / 1e9
