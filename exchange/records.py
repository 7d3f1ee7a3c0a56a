"""Statistics records: one JSON document each, which the reporter writes to the spool; see docs/results.md."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import orjson

from exchange.messages import Statistics, encode

SCHEMA = 1
COMPLETION, TRAFFIC, PROCESS, SESSION, THROUGHPUT, SAMPLE, END, RESULT = (
    "completion", "traffic", "process", "session", "throughput", "sample", "end", "result",
)  # fmt: skip


@dataclass(frozen=True)
class RecordWriter:
    """Makes the records of one source of one run."""

    run: int
    source: str

    def document(self, kind: str, payload: dict[str, Any]) -> bytes:
        """One line of the spool; arrays of numpy are lists in it."""
        record = {
            "schema": SCHEMA, "run": f"{self.run:016x}", "source": self.source, "kind": kind,
            "wall_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns(), "payload": payload,
        }  # fmt: skip
        return orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY)

    def frame(self, kind: str, payload: dict[str, Any]) -> bytes:
        """The same as a message for the reporter."""
        return encode(Statistics(self.document(kind, payload)))
