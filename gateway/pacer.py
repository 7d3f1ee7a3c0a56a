"""The open loop: when each order is due. Absolute times, fixed at the start; falling behind moves none of them."""

from __future__ import annotations

NEVER_NS = 2**62


class Pacer:
    """Order i (from 1) is due at start + (i - 1) periods. Without a rate every order is due at once."""

    def __init__(self, orders_per_s: float | None, packing: int, order_limit: int) -> None:
        self.period_ns = 0.0 if orders_per_s is None else 1e9 / orders_per_s
        self._packing, self._order_limit = packing, order_limit
        self.start_ns = 0

    @property
    def scheduled(self) -> bool:
        return self.period_ns > 0

    def start(self, now_ns: int) -> None:
        self.start_ns = now_ns

    def due_ns(self, order_id: int) -> int:
        return self.start_ns + int((order_id - 1) * self.period_ns)

    def due_by(self, now_ns: int) -> int:
        """How many orders may have gone by now: whole packs, and the rest with the last order."""
        if not self.scheduled:
            return self._order_limit
        due = min(int((now_ns - self.start_ns) / self.period_ns) + 1, self._order_limit)
        return due if due == self._order_limit else due - due % self._packing

    def next_due_ns(self, sent: int) -> int:
        """When the next pack after `sent` orders is complete, and so may go."""
        if sent >= self._order_limit:
            return NEVER_NS
        return self.due_ns(min(sent + self._packing, self._order_limit))
