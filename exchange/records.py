"""Statistics records: one JSON document each, which the reporter writes to the spool; see docs/spool.md."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypedDict

import orjson

from exchange.instances import INSTANCES, named
from exchange.json_records import SCHEMA, Record, check, decode
from exchange.measurements import LogBuckets, Source
from exchange.messages import Statistics, encode

COMPLETION, TRAFFIC, PROCESS, SESSION, THROUGHPUT, SAMPLE, END, RESULT = (
    "completion",
    "traffic",
    "process",
    "session",
    "throughput",
    "sample",
    "end",
    "result",
)

SOURCES = [named(source.name.lower(), instance) for source in Source for instance in INSTANCES]
SOURCES_KINDS = (COMPLETION, TRAFFIC, PROCESS, RESULT)
"""Records that a source sends itself; the reporter makes the others."""


class SpoolRecord(TypedDict):
    """A line of the spool."""

    schema: int
    source: str
    kind: str
    wall_ns: int
    monotonic_ns: int
    payload: dict[str, Any]


class Completion(TypedDict):
    """Log buckets of the orders that were answered in a second, by one clock."""

    second: int
    clock: str
    last_order: bool
    count: int
    sum_ns: int
    min_ns: int
    max_ns: int
    bucket: list[int]
    bucket_count: list[int]


class Traffic(TypedDict):
    """Counts of a second."""

    second: int
    orders_sent: int
    orders_answered: int
    messages_received: int


class Process(TypedDict):
    """Use of the processor since the clock started."""

    second: int
    cpu_s: float


class Throughput(TypedDict):
    meter: int
    rate_per_s: float


PAYLOADS: dict[str, type] = {COMPLETION: Completion, TRAFFIC: Traffic, PROCESS: Process, THROUGHPUT: Throughput}
"""Payloads by kind, as far as readers without Spark rely on them."""


def decode_line(line: bytes) -> Record:
    """Decode a line of the spool. UnusableRecord where it or its payload is not what readers rely on."""
    record = decode(line, SpoolRecord)
    if kind := PAYLOADS.get(record["kind"]):
        check(record["payload"], kind)
    return record


def decode_sent(document: bytes, run: int) -> Record | None:
    """Decode a record that a source of this run sent; None for any other document.

    A record that readers of the spool cannot use is refused here, since one of them would spoil all figures of the run.
    """
    try:
        record = decode_line(document)
        if record["kind"] == COMPLETION:
            LogBuckets.from_sparse(record["payload"])
    except (ValueError, IndexError, OverflowError):  # an UnusableRecord is a ValueError
        return None
    is_known = record["source"] in SOURCES and record["kind"] in SOURCES_KINDS
    is_of_run = record["schema"] == SCHEMA and record.get("run") == f"{run:016x}"
    return record if is_known and is_of_run and b"\n" not in document else None


@dataclass(frozen=True)
class RecordWriter:
    """Makes the records of one source of one run."""

    run: int
    source: str

    def document(self, kind: str, payload: dict[str, Any], read_ns: tuple[int, int] | None = None) -> bytes:
        """A line of the spool; numpy arrays become lists. `read_ns`: wall and monotonic clock, by default now."""
        wall_ns, monotonic_ns = read_ns or (time.time_ns(), time.monotonic_ns())
        record = {
            "schema": SCHEMA,
            "run": f"{self.run:016x}",
            "source": self.source,
            "kind": kind,
            "wall_ns": wall_ns,
            "monotonic_ns": monotonic_ns,
            "payload": payload,
        }
        return orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY)

    def frame(self, kind: str, payload: dict[str, Any], read_ns: tuple[int, int] | None = None) -> bytes:
        """The document as a message for the reporter."""
        return encode(Statistics(self.document(kind, payload, read_ns)))
