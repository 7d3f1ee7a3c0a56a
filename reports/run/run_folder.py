"""What the page is made from: `run.json`, and of the spool the kinds that are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exchange.records import PAYLOADS
from exchange.run_record import RunRecord
from runs.record.reading import record_for_report
from runs.record.spool import records

Record = dict[str, Any]
Spool = dict[str, list[Record]]  # by kind, each in order of arrival

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
    run = record_for_report(record_file, RunRecord) if record_file.exists() else UNRECORDED_RUN
    return RunFolder(run, _read_spool(folder))


def _read_spool(folder: Path) -> Spool:
    """The records of the kinds that are drawn; UserError at one that cannot be read."""
    spool: Spool = {kind: [] for kind in PAYLOADS}
    for record in records(folder):
        if record["kind"] in spool:
            spool[record["kind"]].append(record)
    return spool


def part(record: Record, name: str) -> Record:
    """A part of a record; empty where it is absent or null."""
    found = record.get(name)
    return found if isinstance(found, dict) else {}
