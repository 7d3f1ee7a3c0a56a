"""The open loop: when each order may go. Due times are fixed at the start, and no delay moves them."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from exchange.settings import RunSettings
from gateway.due_times import NEVER_NS, NO_DUE_TIMES, DueTimes, due_times_of
from transports.frames import Longs

BLOCK = 2048
"""Due times that are generated at once."""
LOOK_AHEAD = 2048
"""The orders of the largest batch."""
WINDOW = 32 * LOOK_AHEAD
"""The most due times in memory. When it is full, the earlier half is dropped."""


class Schedule:
    """Due times on the gateway's clock. They never decrease, and are generated in blocks, a little ahead of orders."""

    def __init__(self, due_times: DueTimes) -> None:
        self._source = due_times
        self.at_once = due_times.at_once
        self._due: Longs = np.zeros(WINDOW, np.int64)
        self._times = self._due.data  # reads a value in a third of the time of an array
        # In memory are the due times of orders _dropped + 1 to _generated.
        self._dropped = 0
        self._generated = 0
        self._start_ns = 0

    def start(self, now_ns: int) -> None:
        """Start the clock: once, before the first call of another method."""
        self._start_ns = now_ns

    def due_ns(self, order_id: int) -> int:
        """Due time of an order. LookupError if it is no longer in memory."""
        return self._times[self._place(order_id)]

    def span(self, first_id: int, count: int) -> Longs:
        """Due times of `count` orders from `first_id` on, at most WINDOW / 2."""
        end = self._place(first_id + count - 1) + 1
        return self._due[end - count : end]

    def due_by(self, now_ns: int, after: int) -> int:
        """Return the number of orders that are due, `after` or more: the first `after` are known to be due.

        At most LOOK_AHEAD orders beyond these are checked.
        """
        end = self._place(after + LOOK_AHEAD) + 1
        first = end - LOOK_AHEAD
        for due in (0, 1):  # usually no further order is due, or one: faster than a search
            if self._times[first + due] > now_ns:
                return after + due
        return after + bisect_right(self._times, now_ns, first + 2, end) - first

    def _place(self, order_id: int) -> int:
        """Return the index of an order's due time in `_due`, after generating it if need be. LookupError if dropped."""
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
    """Decides when orders may go: when they are due, in whole packs. Without a schedule all of them may go at once."""

    def __init__(self, schedule: Schedule | None, packing: int, order_limit: int) -> None:
        self._schedule = schedule
        self._packing = packing
        self._order_limit = order_limit
        self._first_pack_ns = 0
        """When the first pack may go."""

    @classmethod
    def of(cls, settings: RunSettings) -> Pacer:
        due_times = due_times_of(settings)
        schedule = Schedule(due_times) if due_times else None
        return cls(schedule, settings.packing, settings.order_limit)

    @property
    def scheduled(self) -> bool:
        """Whether orders have due times."""
        return self._schedule is not None

    @property
    def at_once(self) -> int:
        """The most orders that are due at the same time; 1 without a schedule."""
        return self._schedule.at_once if self._schedule is not None else 1

    def start(self, now_ns: int) -> None:
        """Start the clock of the due times."""
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
        """Return the number of orders that may go by now, at most a batch more than `prepared`.

        These are whole packs, but for the run's last pack, which may be shorter.
        """
        if self._schedule is None:
            return self._order_limit
        due = min(self._schedule.due_by(now_ns, prepared), self._order_limit)
        if due == self._order_limit:
            return due
        return due - due % self._packing

    def next_due_ns(self, sent: int) -> int:
        """Return the time at which the next pack after `sent` orders may go: when its last order is due."""
        if sent >= self._order_limit:
            return NEVER_NS
        last_of_pack = min(sent + self._packing, self._order_limit)
        return self.due_ns(last_of_pack)

    def length_s(self, sent: int) -> float | None:
        """Return the time from when the first pack may go to when the last of `sent` orders is due.

        None without a schedule, or without orders.
        """
        if self._schedule is None or not sent:
            return None
        length_ns = self.due_ns(sent) - self._first_pack_ns
        return max(length_ns, 0) / 1e9
