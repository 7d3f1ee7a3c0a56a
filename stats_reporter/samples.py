"""Pairs the timestamps of sampled orders by id: due, handed over, answered."""

from __future__ import annotations

from exchange.measurements import Meter
from exchange.messages import Timestamp

_NAMES = {
    Meter.ORDER_DUE: "due_ns",
    Meter.ORDER_HANDED_OVER: "handed_over_ns",
    Meter.ORDER_ANSWERED: "answered_ns",
}


class SamplePairs:
    """`paired` counts complete samples; those that still wait for a reading are in `open`.

    Once one due time has come there is a schedule, and every order has one.
    """

    def __init__(self) -> None:
        self.open: dict[int, dict[str, int | None]] = {}
        self.paired = 0
        self._scheduled = False

    def take(self, stamp: Timestamp) -> dict[str, int | None] | None:
        """The sample that this reading completes: an order that was handed over and answered, and due if any was."""
        sample = self.open.setdefault(stamp.correlation_id, {"id": stamp.correlation_id, "due_ns": None})
        sample[_NAMES[Meter(stamp.meter)]] = stamp.time_ns
        self._scheduled |= sample["due_ns"] is not None
        waits_for_due = self._scheduled and sample["due_ns"] is None
        if waits_for_due or "answered_ns" not in sample or "handed_over_ns" not in sample:
            return None
        self.paired += 1
        return self.open.pop(stamp.correlation_id)
