"""Due times on the gateway's clock: made in blocks, a little ahead of the orders, and kept until they have gone."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

import numpy as np

from exchange.settings import RunSettings
from gateway.due_times import DueTimes, Longs, Periodic, Ramp
from gateway.poisson import Poisson
from gateway.replay import Recorded

BLOCK = 512
LOOK_AHEAD = 1024
"""Orders; no batch is larger."""
WINDOW = 16 * LOOK_AHEAD
"""Due times in reach, half of them at least behind the latest."""


class Schedule:
    """Order by order, each not before the last; falling behind moves none of them."""

    def __init__(self, due_times: DueTimes) -> None:
        self._source = due_times
        self.at_once = due_times.at_once
        self._due: Longs = np.zeros(WINDOW, np.int64)
        self._times = self._due.data  # gives one time at a third of what an array takes
        self._gone = self._made = 0  # the window holds those of orders gone + 1 to made
        self._start_ns = 0

    def start(self, now_ns: int) -> None:
        """Once, before anybody asks for a due time."""
        self._start_ns = now_ns

    def due_ns(self, order_id: int) -> int:
        return self._times[self._place(order_id)]

    def span(self, first_id: int, count: int) -> Longs:
        """Those of `count` orders from `first_id` on, at most WINDOW / 2."""
        end = self._place(first_id + count - 1) + 1
        return self._due[end - count : end]

    def due_by(self, now_ns: int, after: int) -> int:
        """How many orders are due, of which the first `after` are known to be; LOOK_AHEAD more at most."""
        end = self._place(after + LOOK_AHEAD) + 1
        first = end - LOOK_AHEAD
        for few in (0, 1):  # the usual cases when idle
            if self._times[first + few] > now_ns:
                return after + few
        return after + bisect_right(self._times, now_ns, first + 2, end) - first

    def _place(self, order_id: int) -> int:
        while order_id > self._made:
            self._make()
        if order_id <= self._gone:
            raise LookupError(f"order {order_id} has gone, and its due time with it")
        return order_id - self._gone - 1

    def _make(self) -> None:
        if self._made - self._gone == WINDOW:
            self._due[: WINDOW // 2] = self._due[WINDOW // 2 :]
            self._gone += WINDOW // 2
        at = self._made - self._gone
        block = self._due[at : at + BLOCK]
        self._source.write(block)
        block += self._start_ns
        self._made += BLOCK


def due_times_of(settings: RunSettings) -> DueTimes | None:
    """None where there is no rate, and so nothing is due."""
    if settings.orders_per_s is None:
        return None
    period_ns, arrivals = 1e9 / settings.orders_per_s, settings.arriving
    match arrivals.kind:
        case "poisson":
            return Poisson(period_ns, settings.seed)
        case "ramp":
            return Ramp(period_ns, arrivals.shares, settings.order_limit)
        case "recorded":
            return Recorded.of(Path(str(settings.tape)), settings.order_limit, settings.speed or 1.0)
        case _:
            return Periodic(period_ns, arrivals.burst)
