"""The meters of a gateway that may take the place of a killed one."""

from __future__ import annotations

from gateway.meters import Meters, TrafficCounts
from gateway.recovering.progress import GatewayProgress


class RecoveringMeters(Meters):
    """Meters whose counts may begin with those that a killed gateway has reported."""

    def go_on_from(self, before: GatewayProgress) -> None:
        """Report only what goes beyond these counts. Call this before `start`."""
        self._counts_before = TrafficCounts(before.sent, before.answered, before.received)

    def _counts(self) -> TrafficCounts:
        """Return the counts. Until this gateway has caught up with the reported counts, return those."""
        now = super()._counts()
        before = self._counts_before
        return TrafficCounts(
            sent=max(now.sent, before.sent),
            answered=max(now.answered, before.answered),
            received=max(now.received, before.received),
        )
