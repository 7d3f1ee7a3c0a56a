"""run.json, as its readers rely on it; docs/results.md has all of its fields.

What was not measured is absent, or null.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

Figures = dict[str, float | None]
"""By name; the unit is in the name, or in that of the figures."""


class Socket(TypedDict):
    """One end of a connection, as it was read back; its counters are absent where the system has none."""

    component: str
    local: str
    peer: str
    tcp_nodelay: bool | None


class RunSettingsRecord(TypedDict):
    """The settings of a run. A run by hand whose gateway left no result has none."""

    transport: NotRequired[str]
    orders_per_s: NotRequired[float | None]
    arrivals: NotRequired[str]
    warm_up_s: NotRequired[float | None]
    pairs: NotRequired[int]


class RunRecord(TypedDict):
    schema: int
    name: str
    status: str
    reasons: list[str]
    started_at: NotRequired[str | None]
    duration_s: NotRequired[float | None]
    settings: NotRequired[RunSettingsRecord | None]
    counts: NotRequired[dict[str, int | None] | None]
    checksums: NotRequired[dict[str, str | None] | None]
    rates: NotRequired[Figures | None]
    completion_us: NotRequired[dict[str, Figures] | None]
    lag_us: NotRequired[Figures | None]
    components: NotRequired[dict[str, Figures] | None]
    sockets: NotRequired[list[Socket] | None]
    host: NotRequired[dict[str, Any] | None]
    versions: NotRequired[dict[str, Any] | None]
    network: NotRequired[dict[str, Any] | None]
    pairs: NotRequired[list[dict[str, Any]] | None]
