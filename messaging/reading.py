"""Reads bench.json back: it is there from the first measurement on, and says whether the benchmark came to its end."""

from __future__ import annotations

from pathlib import Path

from runs.record.unread import Record, Shape, read_record

FILE = "bench.json"
SCHEMA = 1
SHAPE: Shape = {
    "name": str, "benchmark": str, "status": str, "reasons": list, "started_at": str, "settings": dict, "rows": list,
    "host": dict, "versions": dict,
}  # fmt: skip


def read(folder: Path) -> Record:
    """bench.json's content."""
    return read_record(folder / FILE, SCHEMA, SHAPE)
