"""The kinds of records in results folders: a TypedDict for each, with the fields that readers rely on.

docs/run-record.md has all fields. A value that was not measured is absent, or null.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from exchange.json_records import DAMAGED, Record, UnusableRecord, decode
from exchange.words import printable
from exchange.workload import Arrivals

MOST_RECORD_BYTES = 256 << 20
"""The longest record that is read: a longer one would keep `results` and `serve` for minutes."""
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
    orders: NotRequired[int | None]
    duration_s: NotRequired[float | None]
    warm_up_s: NotRequired[float | None]
    pairs: NotRequired[int]
    gateways: NotRequired[int]
    engines: NotRequired[int]


class SubscriberRecord(TypedDict):
    """Figures of received market data; without delivery times if the subscriber is on another host than the engine."""

    subscriber: int
    messages: int
    gaps: int
    dropped: int
    conflated: int
    delivery_us: Figures


class PublishedRecord(TypedDict):
    """Figures of the market data that a run's engine published."""

    slow_subscriber: str
    messages: int
    frames_dropped: int
    waited_s: float
    joined: list[int]


class MarketDataRecord(TypedDict):
    """The market data of a run; `published` is null if the engine left no result."""

    published: PublishedRecord | None
    delivery_us: Figures
    subscribers: list[SubscriberRecord]


class BacklogRecord(TypedDict):
    """The most unanswered orders at the end of a second, when that was, and when the backlog was gone."""

    highest: int
    highest_at_s: float
    drained_at_s: float | None


class HostRecord(TypedDict):
    """A host of a run over several; `noise` is that of another machine than the launcher's."""

    host: str
    components: list[str]
    is_launchers_machine: bool
    facts: dict[str, Any]
    noise: NotRequired[dict[str, Any] | None]


class OneWayRecord(TypedDict):
    """One-way times of sampled orders, and the bound of the offset of the two clocks."""

    count: int
    bound: float
    to_engine: Figures
    back: Figures


class RunRecord(TypedDict):
    """run.json: what a run was to do, and what it measured."""

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
    backlog: NotRequired[BacklogRecord | None]
    components: NotRequired[dict[str, Figures] | None]
    sockets: NotRequired[list[Socket] | None]
    host: NotRequired[dict[str, Any] | None]
    versions: NotRequired[dict[str, Any] | None]
    network: NotRequired[dict[str, Any] | None]
    hosts: NotRequired[list[HostRecord] | None]
    one_way_us: NotRequired[OneWayRecord | None]
    recovered: NotRequired[dict[str, Any] | None]
    market_data: NotRequired[MarketDataRecord | None]
    pairs: NotRequired[list[dict[str, Any]] | None]
    gateways: NotRequired[list[dict[str, Any]] | None]
    engines: NotRequired[list[dict[str, Any]] | None]


class ArmSettingsRecord(TypedDict):
    """The settings of an arm's runs."""

    transport: str
    orders_per_s: float | None
    arrivals: NotRequired[str]


class ArmRecord(TypedDict):
    """An arm of a trial: a contender in a block."""

    contender: str
    block: str
    settings: ArmSettingsRecord
    levels: NotRequired[dict[str, str]]
    """The values by which arms differ, in words, by the setting's field."""


class PlanRecord(TypedDict):
    """plan.json: what a trial was to do."""

    schema: int
    study: NotRequired[str | None]
    seed: int
    repeats: int
    pause_s: NotRequired[float]
    resumed: NotRequired[int | None]
    """How often the trial was resumed; None if an older version wrote the plan."""
    arms: list[ArmRecord]
    order: list[str]


class EstimateRecord(TypedDict):
    """A metric of an arm: its median over the repeats, with an interval."""

    median: float
    low: float | None
    high: float | None
    by_repeat: Any
    """The value of each repeat, by the repeat's number."""


class JudgedArmRecord(TypedDict):
    """The figures that an arm's runs measured."""

    label: str
    contender: str
    block: str
    settings: ArmSettingsRecord
    runs: list[Record]
    metrics: dict[str, EstimateRecord]
    held: bool | None
    """Whether the arm kept its rate; true at rate max, and None without a valid run."""


class VerdictRecord(TypedDict):
    """The verdict on two arms."""

    metric: str
    block: str
    first: str
    second: str
    outcome: str
    sentence: str


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
    verdicts: list[VerdictRecord]
    arms: list[JudgedArmRecord]
    conditions: Record


class GateCheckRecord(TypedDict):
    """A condition of a gate, and its outcome."""

    condition: str
    requirement: str
    outcome: Literal["passed", "failed", "undecided"]
    sentence: str


class GateRecord(TypedDict):
    """gate.json: the outcomes of the conditions that were set for a run or a comparison."""

    schema: int
    checks: list[GateCheckRecord]
    baseline_notes: list[str]


class RecordHead(TypedDict):
    """Fields of every record except run.json and the records of trials."""

    schema: int
    name: str
    status: str
    started_at: str
    host: Record
    versions: Record


class ProbeRecord(TypedDict):
    """A run at one value of the load. The value's field is named by the record's axis, as orders_per_s."""

    run: str
    holds: bool
    why: str | None


class CapacityRecord(RecordHead):
    """capacity.json: an objective, and the highest rate that holds it; null before an edge is found."""

    objective: str
    settings: RunSettingsRecord
    search: Record
    flags: list[str]
    capacity_orders_per_s: NotRequired[dict[str, float | None] | None]
    probes: list[ProbeRecord]
    searches: NotRequired[list[Any]]
    redo_noisy: NotRequired[Record | None]
    set_aside: NotRequired[list[Record]]


class FaultLoadRecord(TypedDict):
    """The load of each cell of a fault matrix."""

    rate_per_s: float
    """Orders offered a second."""
    seconds: float
    """How long a run offers orders."""
    further: list[str]
    """The options of `exchange run` that the user gave for every run."""


class FaultCellRecord(TypedDict):
    """A cell of a fault matrix. A cell that was not tried says why in `skipped`, and has no orders."""

    fault: str
    transport: str
    delivery: str | None
    over: str
    """The transport, with the guarantee if it has several: the name of the cell's column."""
    run: str
    skipped: NotRequired[str]
    said: NotRequired[str | None]
    """The run's first sentence about what happened."""
    orders: NotRequired[dict[str, int | None]]


class FaultsRecord(RecordHead):
    """faults.json: a fault matrix, a run for each fault over each transport."""

    settings: FaultLoadRecord
    planned_cells: int
    faults: dict[str, str]
    cells: list[FaultCellRecord]


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


class BenchCellRecord(TypedDict):
    """A cell of a messaging benchmark."""

    transport: str
    point: Record
    words: str
    figures: dict[str, Record]
    repeats: list[Record]


class BenchPartRecord(TypedDict):
    """A benchmark of a suite."""

    benchmark: str
    reasons: list[str]
    settings: Record
    rows: list[BenchCellRecord]


class BenchRecord(RecordHead):
    """bench.json: the cells of a messaging benchmark, or the benchmarks of a suite."""

    benchmark: str
    reasons: list[str]
    settings: Record
    rows: list[BenchCellRecord]
    parts: NotRequired[list[BenchPartRecord]]


class PaperPartRecord(TypedDict):
    """A part of a paper: the command that measured it."""

    part: str
    command: str
    items: list[str]
    status: str
    reasons: list[str]


class PaperClaimRecord(TypedDict):
    """A sentence of a paper, with what was seen."""

    place: str
    sentence: str
    statistic: str
    expected: str
    of_hardware: bool
    """Whether the claim depends on hardware that this machine may not have."""
    network: NotRequired[str]
    """The network that the claim was tested on; empty for loopback."""
    by_construction: NotRequired[bool]
    """Whether our rates were recovered from the values that the claim names."""
    outcome: str
    why: str
    ratio: float | None
    low: float | None
    high: float | None
    repeats: int
    as_expected: NotRequired[bool | None]
    """Whether the ratio lies where the sentence says, if its repeats are too few for a verdict; None otherwise."""


class PaperRecord(RecordHead):
    """paper.json: a paper's parts, and its claims."""

    paper: str
    title: str
    quick: bool
    repeats: NotRequired[int | None]
    """What a user asked for; None for each part's own number."""
    networks: NotRequired[list[str]]
    """What a user asked for; empty for the paper's own."""
    transports: NotRequired[list[str]]
    """What a user asked for in addition to the paper's own."""
    parts: list[PaperPartRecord]
    claims: list[PaperClaimRecord]
    brokers: NotRequired[Record]
    """Product and version of the broker of each transport, in words."""
    noise_summary: NotRequired[Record]
    caveats: list[str]


def decode_record(content: bytes, kind: type) -> Record:
    """Decode a record of a results folder. UnusableRecord names the field that is wrong.

    Beside the types of `kind`, the arrivals in its settings are checked: they are a text with a form of its own.
    """
    record = decode(content, kind)
    if kind in (RunRecord, CapacityRecord):
        _check_arrivals(record.get("settings") or {}, "$.settings")
    if kind in (PlanRecord, ComparisonRecord):
        for number, arm in enumerate(record["arms"]):
            _check_arrivals(arm["settings"], f"$.arms[{number}].settings")
    return record


def _check_arrivals(settings: Record, path: str) -> None:
    """Raise UnusableRecord, naming the field, if the settings have arrivals that this version does not know."""
    if "arrivals" not in settings:
        return
    try:
        Arrivals.parse(settings["arrivals"])
    except ValueError as error:
        arrivals = printable(repr(settings["arrivals"]))
        raise UnusableRecord(DAMAGED, f"is damaged: {arrivals} are no arrivals - at `{path}.arrivals`") from error
