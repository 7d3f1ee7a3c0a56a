"""Joins the readings of a gateway's sampled orders: the times at which each order was due, handed over and answered."""

from __future__ import annotations

from exchange.instances import untagged
from exchange.messages import Timestamp
from exchange.meters import Meter

READINGS: dict[int, str] = {
    Meter.ORDER_DUE: "due_ns",
    Meter.ORDER_HANDED_OVER: "handed_over_ns",
    Meter.ORDER_ANSWERED: "answered_ns",
}
"""The field of a sample that a reading fills, by the reading's meter."""


class SamplePairs:
    """Joins the timestamps of a gateway's sampled orders by id: due, handed over, answered."""

    def __init__(self) -> None:
        self.open: dict[int, dict[str, int | None]] = {}
        """Samples that still wait for a reading, by id."""
        self.paired = 0
        """The number of complete samples."""
        self._scheduled = False
        """Whether a due time has come. Then the run has a schedule, and every sample waits for a due time, too."""

    def take(self, stamp: Timestamp) -> dict[str, int | None] | None:
        """Take a reading. Returns the sample that this reading completes; None if it completes none."""
        sample = self.open.setdefault(stamp.correlation_id, {"id": stamp.correlation_id, "due_ns": None})
        meter, _ = untagged(stamp.meter)
        sample[READINGS[meter]] = stamp.time_ns
        if sample["due_ns"] is not None:
            self._scheduled = True
        waits_for_due = self._scheduled and sample["due_ns"] is None
        if waits_for_due or "answered_ns" not in sample or "handed_over_ns" not in sample:
            return None
        self.paired += 1
        return self.open.pop(stamp.correlation_id)
