"""A gateway's progress, which it tells its launcher each second. If it is killed, its successor goes on from there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from exchange.messages import Statistics, read


class GatewayProgress(NamedTuple):
    """The clock and the counts of a gateway."""

    start_ns: int
    """When its clock started, on the host's monotonic clock."""
    at_ns: int
    """When it reported this progress."""
    first_handed_ns: int
    """When the first order was handed over."""
    sent: int
    """Orders sent."""
    answered: int
    """Orders whose completion times are reported. They have the lowest ids, since first answers come in order."""
    received: int
    """Answers of every kind."""
    session: int
    """The number of the current session with the engine."""
    sessions: int
    """How many sessions there were."""
    resent: int
    """Orders sent again."""
    without_service_ns: int
    """The time in which no engine served the gateway."""
    records: Sequence[str] = ()
    """Frames of records, as Latin-1, that may not be in the spool."""

    def with_records(self, frames: Iterable[bytes]) -> GatewayProgress:
        """Return a copy that holds the records among these frames."""
        records = [frame.decode("latin-1") for frame in frames if isinstance(read(frame), Statistics)]
        return self._replace(records=records)
