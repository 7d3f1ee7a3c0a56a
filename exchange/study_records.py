"""The records that studies and benchmarks leave in their folders, as far as readers rely on them."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from exchange.run_record import RunSettingsRecord

Part = dict[str, Any]


class ArmRecord(TypedDict):
    contender: str
    block: str
    settings: Part
    levels: NotRequired[dict[str, str]]


class PlanRecord(TypedDict):
    """plan.json: what a trial was to do."""

    schema: int
    study: NotRequired[str | None]
    seed: int
    repeats: int
    pause_s: NotRequired[float]
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
    metrics: dict[str, Part]
    verdicts: list[Part]
    arms: list[Part]
    conditions: Part


class CapacityRecord(TypedDict):
    """capacity.json: an objective, and the highest rate that holds it; null before an edge is found."""

    schema: int
    name: str
    status: str
    started_at: str
    objective: str
    settings: RunSettingsRecord
    search: Part
    flags: list[str]
    capacity_orders_per_s: NotRequired[dict[str, float | None] | None]
    probes: list[Part]
    searches: list[Any]
    host: Part
    versions: Part


class SimulationRecord(TypedDict):
    """simulation.json: many instruments, matched without messaging."""

    schema: int
    name: str
    status: str
    started_at: str
    settings: Part
    master: str
    partitions: int
    totals: dict[str, int]
    per_instrument: dict[str, Part]
    checksums: dict[str, str]
    rates: dict[str, float]
    trades: NotRequired[Part | None]
    host: Part
    versions: Part


class BenchRecord(TypedDict):
    """bench.json: the cells of a messaging benchmark."""

    schema: int
    name: str
    benchmark: str
    status: str
    reasons: list[str]
    started_at: str
    settings: Part
    rows: list[Part]
    host: Part
    versions: Part
