"""The clocks of a benchmark's hosts, for one measurement: from readings before it and after it.

A message has the publisher's time, and its consumer needs that clock to tell how long the message was under way. So a
consumer on another machine is told how far its clock is ahead. That is known with a bound, which stands in the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from exchange_simulation.launching.hosts.clock_offset import ClockOffset
from exchange_simulation.messaging.roles import CONSUMER, PUBLISHER, ReceivedPart, Role, RoleResult, kind_of


@dataclass(frozen=True)
class RoleClocks:
    """The bounds of each clock minus the launcher's: before a measurement, by kind of role."""

    before: Mapping[str, ClockOffset]
    is_one_clock: bool
    """Both kinds of roles have the same clock, as on one machine."""

    def with_clocks(self, roles: list[Role]) -> list[Role]:
        """Return the roles, each knowing how far its clock is ahead of that of the roles that begin."""
        if self.is_one_clock or not any(role.begins for role in roles):
            return roles
        ahead_ns = self._ahead_ns(CONSUMER) - self._ahead_ns(PUBLISHER)
        return [role if role.begins else replace(role, clock_ahead_ns=ahead_ns) for role in roles]

    def by_launchers_clock(self, role: Role, result: RoleResult) -> RoleResult:
        """Return the result with all of its times by the launcher's clock, so that results can be compared."""
        ahead_ns = self._ahead_ns(kind_of(role))
        return replace(
            result,
            first_ns=_earlier(result.first_ns, ahead_ns),
            last_ns=_earlier(result.last_ns, ahead_ns),
            mean_ns=_earlier(result.mean_ns, ahead_ns),
            details={name: _detail(name, value, ahead_ns) for name, value in result.details.items()},
        )

    def bound_us(self, after: Mapping[str, ClockOffset]) -> float:
        """Return the bound of one-way times, given the clocks after the measurement; 0 for one clock."""
        if self.is_one_clock:
            return 0.0
        bound_ns = 0
        for kind, before in self.before.items():
            both = before.widened_by(after[kind])
            bound_ns += max(both.high_ns - before.middle_ns, before.middle_ns - both.low_ns)
        return bound_ns / 1e3

    def _ahead_ns(self, kind: str) -> int:
        return self.before[kind].middle_ns


def _detail(name: str, value: Any, ahead_ns: int) -> Any:
    """Return a detail of a result with its times, if it has some, by the launcher's clock."""
    if name in TIMES:
        return _earlier(value, ahead_ns)
    if name in COUNTS_WITH_TIMES:
        return [(count, _earlier(time_ns, ahead_ns)) for count, time_ns in value]
    if name in PARTS:
        return [_part(part, ahead_ns) for part in value]
    return value


def _part(part: ReceivedPart, ahead_ns: int) -> ReceivedPart:
    return replace(part, first_ns=_earlier(part.first_ns, ahead_ns), last_ns=_earlier(part.last_ns, ahead_ns))


TIMES = ("replied_ns", "published_ns", "started_ns")
"""The details of a result that are times (monotonic clock)."""
COUNTS_WITH_TIMES = ("last_quarter",)
"""The details that are lists of a number of messages and the time at which that many had come."""
PARTS = ("steps", "quarter_windows")
"""The details that say of several parts of the messages when they came."""


def _earlier(time_ns: int, ahead_ns: int) -> int:
    """Return a time by the launcher's clock; 0, which stands for no time, stays 0."""
    return time_ns - ahead_ns if time_ns else 0
