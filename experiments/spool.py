"""Reads a run's spool back, for the figures that need no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exchange.measurements import LogBuckets
from exchange.records import COMPLETION, SCHEMA
from experiments.readable import readable

HEAD = ("source", "kind", "wall_ns", "monotonic_ns", "payload")
"""What every record has."""


def records(run_folder: Path) -> Iterator[dict[str, Any]]:
    """Every record, in order of arrival. UserError at one that cannot be read."""
    for path in sorted((run_folder / "spool").glob("[0-9]*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            yield readable(line, f"{path}, line {number},", SCHEMA, HEAD)


def completion(run_folder: Path, warm_up_s: float) -> dict[str, LogBuckets]:
    """Buckets of the whole run by clock, without the warm-up's seconds and the last order."""
    merged: dict[str, LogBuckets] = {}
    for record in records(run_folder):
        payload = record["payload"]
        if record["kind"] == COMPLETION and not payload["last_order"] and payload["second"] >= warm_up_s:
            merged.setdefault(payload["clock"], LogBuckets()).merge(LogBuckets.from_sparse(payload))
    return merged
