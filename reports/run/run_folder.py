"""What the page is made from: `run.json`, and of the spool the kinds that are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs.record.readable import damaged, read_record
from runs.record.record import SCHEMA
from runs.record.spool import records

Record = dict[str, Any]
Spool = dict[str, list[Record]]  # by kind, each in order of arrival

DRAWN_KINDS: dict[str, set[str]] = {
    "completion": {"second", "clock", "last_order", "count", "sum_ns", "min_ns", "max_ns", "bucket", "bucket_count"},
    "traffic": {"second", "orders_sent", "messages_received"},
    "process": {"second", "cpu_s"},
    "throughput": {"meter", "rate_per_s"},
}
"""What is drawn of a record's payload, by kind."""

UNRECORDED_RUN: Record = {
    "status": "partial",
    "reasons": ["The run ended before it wrote its record, run.json; only what the spool holds is shown."],
}


@dataclass(frozen=True)
class RunFolder:
    """`run` is run.json's content."""

    run: Record
    spool: Spool


def read_run_folder(folder: Path) -> RunFolder:
    """A run that was killed left no run.json; a folder with neither record nor spool is no run's folder."""
    record_file = folder / "run.json"
    if not record_file.exists() and not (folder / "spool").exists():
        raise FileNotFoundError(f"{folder} is not a run's folder: it has neither run.json nor a spool")
    run = read_record(record_file, SCHEMA, needed=("status",)) if record_file.exists() else UNRECORDED_RUN
    return RunFolder(run, _read_spool(folder))


def _read_spool(folder: Path) -> Spool:
    spool: Spool = {kind: [] for kind in DRAWN_KINDS}
    for record in records(folder):
        needed = DRAWN_KINDS.get(record["kind"])
        if needed is None:
            continue
        if not isinstance(record["payload"], dict) or not needed <= record["payload"].keys():
            raise damaged(str(folder / "spool"), f"a record of kind {record['kind']} lacks what it should hold")
        spool[record["kind"]].append(record)
    return spool


def part(record: Record, name: str) -> Record:
    """A part of a record; empty where it is absent or null."""
    found = record.get(name)
    return found if isinstance(found, dict) else {}
