"""The class archive, made by an analysis of a run of one record a kind: `exchange spark prepare`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from spark.jobs import summarize
from spark.schemas import SPOOL_SCHEMA

PAYLOADS: dict[str, dict[str, Any]] = {
    "session": {"version": "", "policy": "price-time", "packing": 1, "max_price": 999},
    "throughput": {"meter": 1, "rate_per_s": 1},
    "sample": {"id": 1, "due_ns": 1, "handed_over_ns": 2, "answered_ns": 3},
    "completion": {
        "second": 0,
        "clock": "due",
        "last_order": False,
        "count": 1,
        "sum_ns": 1,
        "min_ns": 1,
        "max_ns": 1,
        "bucket": [0],
        "bucket_count": [1],
    },
    "traffic": {"second": 0, "orders_sent": 1, "orders_answered": 1, "messages_received": 1},
    "process": {
        "second": 0,
        "cpu_s": 0.5,
        "max_rss_bytes": 1,
        "voluntary_context_switches": 0,
        "involuntary_context_switches": 0,
    },
    "end": {"announced": 1, "received": 1},
}


def prepare() -> None:
    """Every later session starts faster; SparkError where that cannot be."""
    with tempfile.TemporaryDirectory(prefix="exchange-prepare-") as folder:
        summarize(smallest_run(Path(folder)), write_archive=True)


def smallest_run(folder: Path) -> Path:
    """A run of one record a kind, written into this folder."""
    about = {"schema": SPOOL_SCHEMA, "run": "0" * 16, "source": "gateway", "wall_ns": 1, "monotonic_ns": 1}
    lines = [json.dumps({**about, "kind": kind, "payload": payload}) for kind, payload in PAYLOADS.items()]
    (folder / "spool").mkdir()
    (folder / "spool" / "000001.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (folder / "run.json").write_text(json.dumps({"schema": 1}))
    return folder
