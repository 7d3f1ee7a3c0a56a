"""A trial's folder: plan.json is written first, comparison.json whenever the command ends; its runs are inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cli.looking_back.row import Row, last_written_at, unusable_row
from exchange.json_records import NEWER, Record
from exchange.study_records import ComparisonRecord, PlanRecord
from runs.record.reading import UNFINISHED, Unusable, damage_named, read_record
from transports.registry import scheme_of

PLAN, FILE = "plan.json", "comparison.json"
MARKS = (PLAN, FILE)


def read(folder: Path) -> Record:
    """comparison.json's content; Unusable where the trial goes on, was killed, or left something else."""
    if (folder / FILE).exists():
        return read_record(folder / FILE, ComparisonRecord)
    plan = read_plan(folder)
    made, planned, study = _made(folder, plan), len(plan["order"]), study_of(plan)
    raise Unusable(
        folder, UNFINISHED,
        f"has no {FILE}: {made} of {planned} runs are there; where it does not go on, "
        f"exchange {study} --resume {folder.name} does",
    )  # fmt: skip


def row(folder: Path) -> Row:
    try:
        plan = read_plan(folder)
        with damage_named(folder):
            return _row(folder, plan)
    except Unusable as error:
        return unusable_row(folder, "trial", error)


def _row(folder: Path, plan: Record) -> Row:
    settings = [arm["settings"] for arm in plan["arms"]]
    planned = Row(
        name=folder.name,
        what=study_of(plan),
        status=UNFINISHED,
        transports=tuple(dict.fromkeys(scheme_of(of_arm["transport"]) for of_arm in settings)),
        orders_per_s=tuple(dict.fromkeys(of_arm["orders_per_s"] for of_arm in settings)),
        repeats=plan["repeats"],
        planned_runs=len(plan["order"]),
    )
    try:
        found = read(folder)
    except Unusable as error:
        known = replace(planned, runs=_made(folder, plan), last_written_at=last_written_at(folder))
        return replace(known, status=error.status, reason=error.reason)
    runs = sum(len(arm["runs"]) for arm in found["arms"])
    return replace(planned, status=found["status"], started_at=found["conditions"].get("started_at"), runs=runs)


def read_plan(folder: Path) -> Record:
    """plan.json's content; Unusable where there is none that this version knows."""
    return read_record(folder / PLAN, PlanRecord)


def study_of(plan: Record) -> str:
    """Before there were several, every trial was a comparison."""
    return str(plan.get("study") or "compare")


def _made(folder: Path, plan: Record) -> int:
    """Planned runs that have left a record."""
    done = {path.parent.name.rpartition("-")[0] for path in folder.glob("*/run.json")}
    return len(done & {name for name in plan["order"] if isinstance(name, str)})


def show(folder: Path, record: Record) -> None:
    """As the command that made it presented it."""
    show_of(folder, record["study"])(record)


def show_of(folder: Path, study: str) -> Callable[[Record], None]:
    """What presents it: the command's own. Unusable where this version has no such command."""
    from experiments.trials.trial import SHOW

    if study not in SHOW:
        raise Unusable(folder, NEWER, f"was made by exchange {study}, which this version does not have")
    return SHOW[study]
