"""The kinds of records in results folders: a TypedDict for each, with the fields that readers rely on.

docs/run-record.md has all fields. A value that was not measured is absent, or null.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from exchange.json_records import Record

Figures = dict[str, float | None]
"""Figures by name; the unit is in the name."""


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
    mean_message_bytes: NotRequired[float | None]
    checksums: NotRequired[dict[str, str | None] | None]
    rates: NotRequired[Figures | None]
    completion_us: NotRequired[dict[str, Figures] | None]
    lag_us: NotRequired[Figures | None]
    components: NotRequired[dict[str, Figures] | None]
    sockets: NotRequired[list[Socket] | None]
    host: NotRequired[dict[str, Any] | None]
    versions: NotRequired[dict[str, Any] | None]
    network: NotRequired[dict[str, Any] | None]
    recovered: NotRequired[dict[str, Any] | None]
    pairs: NotRequired[list[dict[str, Any]] | None]


class ArmRecord(TypedDict):
    contender: str
    block: str
    settings: Record
    levels: NotRequired[dict[str, str]]


class PlanRecord(TypedDict):
    """plan.json: what a trial was to do."""

    schema: int
    study: NotRequired[str | None]
    seed: int
    repeats: int
    pause_s: NotRequired[float]
    resumed: NotRequired[int | None]
    arms: list[ArmRecord]
    order: list[str]


class ComparisonRecord(TypedDict):
    """comparison.json: what a trial found."""

    schema: int
    name: str
    study: str
    status: str
    caveats: list[str]
    seed: int
    repeats: int
    blocks: list[str]
    metrics: dict[str, Record]
    verdicts: list[Record]
    arms: list[Record]
    conditions: Record


class RecordHead(TypedDict):
    """Fields of every record except run.json and the records of trials."""

    schema: int
    name: str
    status: str
    started_at: str
    host: Record
    versions: Record


class CapacityRecord(RecordHead):
    """capacity.json: an objective, and the highest rate that holds it; null before an edge is found."""

    objective: str
    settings: RunSettingsRecord
    search: Record
    flags: list[str]
    capacity_orders_per_s: NotRequired[dict[str, float | None] | None]
    probes: list[Record]
    searches: NotRequired[list[Any]]
    redo_noisy: NotRequired[Record | None]
    set_aside: NotRequired[list[Record]]


class FaultsRecord(RecordHead):
    """faults.json: a fault matrix, a run for each fault over each transport."""

    settings: Record
    planned_cells: int
    faults: dict[str, str]
    cells: list[Record]


class SimulationRecord(RecordHead):
    """simulation.json: many instruments, matched without messaging."""

    settings: Record
    master: str
    partitions: int
    totals: dict[str, int]
    per_instrument: dict[str, Record]
    checksums: dict[str, str]
    rates: dict[str, float]
    trades: NotRequired[Record | None]
    """Only older versions wrote it."""
    events: NotRequired[Record | None]


class BenchRecord(RecordHead):
    """bench.json: the cells of a messaging benchmark."""

    benchmark: str
    reasons: list[str]
    settings: Record
    rows: list[Record]
