"""Brings the readings of a gateway's sampled orders together: when each was due, handed over and answered."""

from __future__ import annotations

from exchange.instances import untagged
from exchange.measurements import Meter
from exchange.messages import Timestamp

READINGS: dict[int, str] = {
    Meter.ORDER_DUE: "due_ns",
    Meter.ORDER_HANDED_OVER: "handed_over_ns",
    Meter.ORDER_ANSWERED: "answered_ns",
}
"""A sample's fields by the meters of its readings."""


class SamplePairs:
    """Pairs the timestamps of a gateway's sampled orders by id: due, handed over, answered.

    `paired` counts complete samples; `open` has those that still wait for a reading. After the first due time there is
    a schedule, so every sample waits for a due time, too.
    """

    def __init__(self) -> None:
        self.open: dict[int, dict[str, int | None]] = {}
        self.paired = 0
        self._scheduled = False

    def take(self, stamp: Timestamp) -> dict[str, int | None] | None:
        """Take a reading. Returns the sample that it completes, None where it completes none."""
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
