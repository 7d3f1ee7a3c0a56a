"""Our JSON records: one decoder, which names the field that is wrong, and the kinds of records in results folders.

A record's kind is a TypedDict of what readers rely on; docs/run-record.md has all fields. Fields that it does not name
are left alone, since later versions add some. A record stays the dictionary that was written, since it is drawn and
printed as JSON. A value that was not measured is absent, or null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import orjson

from exchange.words import printable

Record = dict[str, Any]

SCHEMA = 1
"""The schema of run.json, of the spool, and of every other record that is decoded here."""
DAMAGED = "damaged"
NEWER = "newer"


def cleaned(value: Any) -> Any:
    """Return the value with every text in it printable, so that text from elsewhere cannot control a terminal."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {cleaned(name): cleaned(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(inner) for inner in value]
    return value


class UnusableRecord(ValueError):
    """A record that this version cannot use. The text follows the record's name: `is damaged: ...`."""

    def __init__(self, status: str, why: str) -> None:
        """`status` is DAMAGED or NEWER."""
        super().__init__(why)
        self.status = status


def decode(content: bytes, kind: type) -> Record:
    """Decode a JSON object and check its fields against `kind`, at any depth. UnusableRecord if one is wrong."""
    try:
        record = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise UnusableRecord(DAMAGED, f"is damaged: it is no JSON ({error})") from error
    if not isinstance(record, dict):
        raise UnusableRecord(DAMAGED, "is damaged: it holds no JSON object")
    schema = record.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        why = f"has schema {schema}, and this version of exchange reads {SCHEMA}: use a newer one"
        raise UnusableRecord(NEWER, why)
    check(record, kind)
    return record


def check(part: Record, kind: type) -> None:
    """Raise UnusableRecord, naming the field, if a record or a part of one does not match `kind`."""
    import msgspec  # 19 ms; components only write records

    try:
        msgspec.convert(part, kind)
    except msgspec.ValidationError as error:
        raise UnusableRecord(DAMAGED, f"is damaged: {error}") from error


def section(record: Record, name: str) -> Record:
    """Return a nested object of a record; empty if it is absent or null."""
    nested = record.get(name)
    return nested if isinstance(nested, dict) else {}


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
    """The fields that all records have but those of runs and trials."""

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


@dataclass(frozen=True)
class LoadAxis:
    """The quantity that a search for a capacity raises: orders a second, or the scale of a benchmark.

    `name` is part of the record's fields, as in capacity_orders_per_s; `noun` and `unit` are for sentences.
    """

    name: str = "orders_per_s"
    noun: str = "rate"
    unit: str = "orders/s"
    ceiling: str = "the generator's own ceiling"
    """Words for the highest value that can be offered."""
    whole: bool = False
    """Only whole numbers can be offered."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> LoadAxis:
        """Return a record's axis. A record of an older version has none, and is of the exchange."""
        return cls(**record.get("axis", {}))

    def in_words(self, value: str) -> str:
        """Return a value with its unit, or behind its noun if it has none. For example: 30,400 orders/s, or base 296"""
        return f"{self.noun} {value}" if self.noun == self.unit else f"{value} {self.unit}"

    def capacity(self, record: Mapping[str, Any]) -> dict[str, float] | None:
        """Return the capacity, as value, low, high; None if no edge was found."""
        capacity: dict[str, float] | None = record[f"capacity_{self.name}"]
        return capacity


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
