"""A benchmark's record, bench.json: rows of medians over repeats, the folder in which it grows, and reading it back."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from exchange.json_records import BenchRecord, Record
from messaging.benchmark import Cell, Figures
from messaging.measuring import COMPLETE, INVALID, PARTIAL
from runs.files import new_run_folder, write_json
from runs.record.reading import read_record

FILE = "bench.json"
UNFINISHED = "it goes on, or was killed"
SEED = 1
"""The seed of the bootstrap."""
SHARE, MOST_S = 0.02, 10.0
"""The largest share of time spent on writing the growing record, and the longest time that a kill loses."""


@dataclass
class Measurements:
    """Repeats, cell by cell in the order of the plan; `stopped` says why some are missing."""

    cells: list[Cell]
    repeats: list[list[Record]] = field(init=False)
    stopped: str | None = UNFINISHED

    def __post_init__(self) -> None:
        self.repeats = [[] for _ in self.cells]

    @property
    def is_empty(self) -> bool:
        return not any(self.repeats)

    def record(self) -> Record:
        """Status, reasons, and a row for each cell that was measured."""
        rows = [_row(cell, repeats) for cell, repeats in zip(self.cells, self.repeats, strict=True) if repeats]
        wrong = [
            f"{row['words']}, repeat {repeat['repeat']}: {reason}"
            for row in rows
            for repeat in row["repeats"]
            if repeat["status"] == INVALID
            for reason in repeat["reasons"]
        ]
        reasons = [self.stopped] * bool(self.stopped) + wrong
        status = PARTIAL if self.stopped else INVALID if reasons else COMPLETE
        return {"status": status, "reasons": reasons, "rows": rows}


def _row(cell: Cell, repeats: Sequence[Record]) -> Record:
    """A cell's row; its figures are of the repeats whose answers were right."""
    right = [_with_usage(repeat, cell.has_broker) for repeat in repeats if repeat["status"] == COMPLETE]
    names = dict.fromkeys(name for figures in right for name in figures)
    return {
        "transport": cell.transport,
        "point": dict(cell.point),
        "words": str(cell),
        "figures": {name: _estimate([figures[name] for figures in right if name in figures]) for name in names},
        "repeats": list(repeats),
    }


def _estimate(values: list[float]) -> dict[str, Any]:
    from exchange.estimates import median

    found = median(values, SEED)
    return {"median": found.value, "low": found.low, "high": found.high, "n": len(values)}


def _with_usage(repeat: Record, has_broker: bool) -> Figures:
    """A repeat's figures, with cores in use and context switches a message of the broker and of each kind of role.

    And TCP packets a message, in all: acknowledgements without data, and what opened the links, are among them.
    """
    noise, sent = repeat["noise"], sum(role["sent"] for role in repeat["roles"].values())
    found = dict(repeat["figures"])
    if not found or not noise or noise["window_s"] <= 0:
        return found
    used: dict[str, list[Mapping[str, Any]]] = {}
    for name, role in repeat["roles"].items():
        used.setdefault(name.partition(" ")[0], []).append(role["usage"])
    if repeat["broker"]:
        used["broker"] = [repeat["broker"]]
    if packets := _packets(repeat, has_broker):
        found["packets_per_message"] = packets / max(sent, 1)
    for kind, usages in used.items():
        found[f"{kind}_cores"] = sum(usage["cpu_s"] for usage in usages) / noise["window_s"]
        switches = sum(usage["voluntary_context_switches"] + usage["involuntary_context_switches"] for usage in usages)
        found[f"{kind}_switches_per_message"] = switches / max(sent, 1)
    return found


def _packets(repeat: Record, has_broker: bool) -> int:
    """Packets of all connections. Without a broker both ends are ours, so only what each end sends counts."""
    counters = ("segments_out", "segments_in") if has_broker else ("segments_out",)
    sockets = [socket for role in repeat["roles"].values() for socket in role["sockets"]]
    return sum(socket.get(name, 0) for socket in sockets for name in counters)


class ResultsFolder:
    """`results`/`name`, from the first measurement on: a benchmark that ends before leaves nothing."""

    def __init__(self, results: Path, name: str) -> None:
        """UserError if no such folder can be made. It is made once there is a record to write."""
        self.folder = new_run_folder(results, name)
        self.folder.rmdir()
        self._results, self._again_s = results, 0.0

    def write_now_and_then(self, record: Callable[[], Record]) -> None:
        """Write the record as it is so far, unless that was done just now."""
        began_s = time.monotonic()
        if began_s >= self._again_s:
            self.write(record())
            self._again_s = time.monotonic() + min((time.monotonic() - began_s) / SHARE, MOST_S)

    def write(self, record: Record) -> None:
        is_new = not self.folder.exists()
        if is_new:
            new_run_folder(self._results, self.folder.name)
        try:
            write_json(self.folder / FILE, record)
        except click.ClickException:
            if is_new:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise


def read(folder: Path) -> Record:
    """Read a folder's bench.json back."""
    return read_record(folder / FILE, BenchRecord)
