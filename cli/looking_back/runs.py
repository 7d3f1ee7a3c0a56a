"""A run's folder: run.json, which comes last, is the mark of a finished one."""

from __future__ import annotations

from pathlib import Path

from cli.looking_back.row import Row, unusable_row
from exchange.json_records import Record
from exchange.run_record import RunRecord
from runs.metrics import completion_us
from runs.record.reading import UNFINISHED, Unusable, read_record
from transports.registry import scheme_of

FILE = "run.json"
MARKS = (FILE, "spool", "orders.bin", "answers.bin", "gateway.log", "engine.log", "reporter.log")
"""One of them is in every folder of a run that came to measure."""


def read(folder: Path) -> Record:
    """run.json's content; Unusable where the run goes on, was killed, or left something else."""
    if not (folder / FILE).exists():
        raise Unusable(
            folder, UNFINISHED,
            f"has no {FILE}: the run goes on, or was killed; exchange report {folder} shows what its spool holds",
        )  # fmt: skip
    return read_record(folder / FILE, RunRecord)


def row(folder: Path) -> Row:
    try:
        record = read(folder)
    except Unusable as error:
        return unusable_row(folder, "run", error)
    settings = record.get("settings") or {}
    transport = settings.get("transport")
    return Row(
        name=folder.name,
        what="run",
        status=record["status"],
        started_at=record.get("started_at"),
        transports=(scheme_of(transport),) if isinstance(transport, str) else (),
        orders_per_s=(_offered_per_s(settings),) if "orders_per_s" in settings else (),
        p50_us=completion_us("due", "p50")(record),
        p99_us=completion_us("due", "p99")(record),
    )


def _offered_per_s(settings: Record) -> float | None:
    """To all pairs; null is as fast as it goes."""
    each, pairs = settings["orders_per_s"], settings.get("pairs", 1)
    return each * pairs if isinstance(each, int | float) and isinstance(pairs, int) else None


def show(_folder: Path, record: Record) -> None:
    """As `exchange run` presented it, and under which conditions it was made."""
    from cli.looking_back.conditions import show_conditions
    from reports.run.terminal import show_record

    show_record(record)
    show_conditions(record)
