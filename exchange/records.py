"""Statistics records: one JSON document each, which the reporter writes to the spool; see docs/spool.md."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, TypedDict

import orjson

from exchange.instances import INSTANCES, named
from exchange.json_records import DAMAGED, SCHEMA, Record, UnusableRecord, check, decode, encode_json
from exchange.measurements import BUCKETS
from exchange.messages import Statistics, encode
from exchange.meters import Source

SESSION = "session"
THROUGHPUT = "throughput"
SAMPLE = "sample"
MATCHED = "matched"
COMPLETION = "completion"
TRAFFIC = "traffic"
PROCESS = "process"
END = "end"
RESULT = "result"

SOURCES = [named(source.name.lower(), instance) for source in Source for instance in INSTANCES]
KINDS_OF_SOURCES = (COMPLETION, TRAFFIC, PROCESS, RESULT)
"""Records that a source sends itself; the reporter makes the others."""

MOST = 2**63
"""Above the largest number of a histogram: sums are kept in 64 bits, signed."""

Int32 = Annotated[int, "32 bits"]
"""A whole number that Spark's tables keep in 32 bits; other whole numbers take 64."""


class SpoolRecord(TypedDict):
    """A line of the spool."""

    schema: Int32
    run: NotRequired[str]
    source: str
    kind: str
    wall_ns: int
    monotonic_ns: int
    payload: dict[str, Any]


class SessionPayload(TypedDict):
    """The settings on which gateway and engine agreed in their hellos."""

    version: str
    policy: str
    packing: Int32
    max_price: Int32


class ThroughputPayload(TypedDict):
    """A reading of a throughput meter."""

    meter: Int32
    rate_per_s: float


class MatchedPayload(TypedDict):
    """When the engine had sent the answers to the batch that held a sampled order, by the engine's monotonic clock."""

    id: int
    matched_ns: int


class SamplePayload(TypedDict):
    """The three times of a sampled order, by the gateway's monotonic clock."""

    id: int
    due_ns: NotRequired[int | None]
    """Null if the run had no schedule."""
    handed_over_ns: int
    answered_ns: int


class CompletionPayload(TypedDict):
    """Log buckets of the orders that were answered in a second, by one clock."""

    second: Int32
    clock: str
    last_order: bool
    count: int
    sum_ns: int
    min_ns: int
    max_ns: int
    bucket: list[Int32]
    bucket_count: list[int]


class TrafficPayload(TypedDict):
    """Counts of a second."""

    second: Int32
    orders_sent: int
    orders_answered: int
    messages_received: int


class ProcessorUse(TypedDict):
    """Use of the processors since the clock started."""

    second: Int32
    cpu_s: float


class ProcessPayload(ProcessorUse):
    """Use of the machine since the clock started."""

    max_rss_bytes: int
    voluntary_context_switches: int
    involuntary_context_switches: int
    rss_bytes: NotRequired[int | None]
    """Resident memory at the second's end. Absent from spools of older versions; null where /proc is hidden."""


class EndPayload(TypedDict):
    """The end of a reporter's part of the spool."""

    announced: int
    received: int
    reporters: NotRequired[Int32 | None]
    """Absent from spools of versions with one reporter."""


PAYLOADS: dict[str, type] = {
    SESSION: SessionPayload,
    THROUGHPUT: ThroughputPayload,
    SAMPLE: SamplePayload,
    MATCHED: MatchedPayload,
    COMPLETION: CompletionPayload,
    TRAFFIC: TrafficPayload,
    PROCESS: ProcessPayload,
    END: EndPayload,
}
"""The fields of each kind, declared here alone: Spark's tables derive their columns from them.

A RESULT is missing here: its fields are those of a component's result (exchange/results.py), and no table has them."""
NEEDED_BY_FIGURES: dict[str, type] = {
    COMPLETION: CompletionPayload,
    TRAFFIC: TrafficPayload,
    PROCESS: ProcessorUse,
    THROUGHPUT: ThroughputPayload,
    SAMPLE: SamplePayload,
}
"""The kinds from which figures are made, with the fields that figures need: a line without these fields is refused."""


def decode_line(line: bytes) -> Record:
    """Decode a line of the spool. UnusableRecord if the line, or a field that figures need, is not as declared."""
    record = decode(line, SpoolRecord)
    if record["kind"] in NEEDED_BY_FIGURES:
        check(record["payload"], NEEDED_BY_FIGURES[record["kind"]])
    if record["kind"] == COMPLETION:
        damage = damage_of_buckets(record["payload"])
        if damage is not None:
            raise UnusableRecord(DAMAGED, f"is damaged: {damage}")
    return record


def damage_of_buckets(payload: Record) -> str | None:
    """Return how a completion's buckets differ from those that `LogBuckets.sparse` makes; None if they do not."""
    buckets = payload["bucket"]
    counts = payload["bucket_count"]
    if len(buckets) != len(counts):
        return f"bucket has {len(buckets)} values, and bucket_count {len(counts)}"
    if buckets and not (min(buckets) >= 0 and max(buckets) < BUCKETS):
        strange = min(buckets) if min(buckets) < 0 else max(buckets)
        return f"bucket holds {strange}, and buckets are 0 to {BUCKETS - 1}"
    numbers = (payload["count"], payload["sum_ns"], payload["min_ns"], payload["max_ns"], *counts)
    if min(numbers) < 0 or max(numbers) >= MOST:
        return f"a number of the histogram is not between 0 and {MOST - 1}"
    if sum(counts) != payload["count"]:
        return f"bucket_count adds up to {sum(counts)}, and count is {payload['count']}"
    return None


def decode_sent(document: bytes, run: int) -> Record | None:
    """Decode a record that a source of this run sent; None for any other document.

    A record that readers of the spool cannot use is refused here, since it would spoil all figures of the run.
    """
    try:
        record = decode_line(document)
    except UnusableRecord:
        return None
    is_known = record["source"] in SOURCES and record["kind"] in KINDS_OF_SOURCES
    is_of_run = record["schema"] == SCHEMA and record.get("run") == f"{run:016x}"
    is_one_line = b"\n" not in document
    return record if is_known and is_of_run and is_one_line else None


@dataclass(frozen=True)
class RecordWriter:
    """Makes the records of one source of one run."""

    run: int
    source: str

    def document(self, kind: str, payload: dict[str, Any], read_ns: tuple[int, int] | None = None) -> bytes:
        """Return a line of the spool; numpy arrays become lists.

        `read_ns`: the wall and the monotonic clock when the payload was read; now if None.
        """
        if read_ns is None:
            read_ns = time.time_ns(), time.monotonic_ns()
        wall_ns, monotonic_ns = read_ns
        record = {
            "schema": SCHEMA,
            "run": f"{self.run:016x}",
            "source": self.source,
            "kind": kind,
            "wall_ns": wall_ns,
            "monotonic_ns": monotonic_ns,
            "payload": payload,
        }
        return encode_json(record, orjson.OPT_SERIALIZE_NUMPY)

    def frame(self, kind: str, payload: dict[str, Any], read_ns: tuple[int, int] | None = None) -> bytes:
        """Return the document as a message for the reporter."""
        return encode(Statistics(self.document(kind, payload, read_ns)))
