"""A trial's folder: plan.json is written first, comparison.json whenever the command ends; its runs are inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from cli.results import trial_difference
from cli.results.kind import Kind, Row, unusable_row
from cli.results.rerun import warn_of_differences
from cli.trial_options import follow_up
from exchange.json_records import NEWER, ComparisonRecord, PlanRecord, Record
from runs.record.reading import UNFINISHED, Unusable, damage_named, read_record
from transports.registry import scheme_of

PLAN = "plan.json"


class Trial(Kind):
    name, file, record = "trial", "comparison.json", ComparisonRecord
    marks = (PLAN, file)
    page = "comparison.html"

    def read(self, folder: Path) -> Record:
        """comparison.json's content; Unusable if the trial goes on, was killed, or left something else."""
        if (folder / self.file).exists():
            return super().read(folder)
        plan = read_plan(folder)
        raise Unusable(
            folder, UNFINISHED,
            f"has no {self.file}: {_finished_runs(folder, plan)} of {len(plan['order'])} runs are there; where it does "
            f"not go on, exchange {study_of(plan)} --resume {folder.name} does",
        )  # fmt: skip

    def row(self, folder: Path) -> Row:
        """The folder's line in the list; it comes from the plan if the trial has no usable record."""
        try:
            with damage_named(folder):
                plan = read_plan(folder)
                planned = _planned_row(folder, plan)
        except Unusable as error:
            return unusable_row(folder, self.name, error)
        row = super().row(folder)
        if row.reason is None:
            return row
        runs = _finished_runs(folder, plan)
        return replace(planned, status=row.status, reason=row.reason, runs=runs, last_written_at=row.last_written_at)

    def row_of(self, folder: Path, record: Record) -> Row:
        runs = sum(len(arm["runs"]) for arm in record["arms"])
        planned, started_at = _planned_row(folder, read_plan(folder)), record["conditions"].get("started_at")
        return replace(planned, status=record["status"], started_at=started_at, runs=runs)

    def show(self, folder: Path, record: Record) -> None:
        show_of(folder, record["study"])(record)

    def differ(self, first: Record, second: Record) -> Record:
        return trial_difference.differ(first, second)

    def show_difference(self, difference: Record) -> None:
        trial_difference.show(difference)

    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool, as_json: bool) -> int:
        """Run the plan again, and let Spark make tables of all its runs."""
        show_of(folder, study_of(read_plan(folder)))
        from experiments.trials.plan import read_plan as plan_of
        from experiments.trials.trial import run_trial

        plan = plan_of(folder)
        try:
            warn_of_differences(self.read(folder)["conditions"])
        except Unusable:
            click.echo(f"{folder} never came to say on what host and with what versions it was run", err=True)
        return follow_up(run_trial(plan, results, name, as_json), not with_spark, as_json)


def _planned_row(folder: Path, plan: Record) -> Row:
    settings = [arm["settings"] for arm in plan["arms"]]
    return Row(
        name=folder.name,
        what=study_of(plan),
        status=UNFINISHED,
        transports=tuple(dict.fromkeys(scheme_of(each["transport"]) for each in settings)),
        orders_per_s=tuple(dict.fromkeys(each["orders_per_s"] for each in settings)),
        repeats=plan["repeats"],
        planned_runs=len(plan["order"]),
    )


def read_plan(folder: Path) -> Record:
    """plan.json's content. Unusable if there is none that this version knows."""
    return read_record(folder / PLAN, PlanRecord)


def study_of(plan: Record) -> str:
    """The command that made the plan. A plan without a name is from a version that only had `compare`."""
    return str(plan.get("study") or "compare")


def _finished_runs(folder: Path, plan: Record) -> int:
    """How many planned runs have left a record."""
    finished = {path.parent.name.rpartition("-")[0] for path in folder.glob("*/run.json")}
    return len(finished & set(plan["order"]))


def show_of(folder: Path, study: str) -> Callable[[Record], None]:
    """The function that prints a study's record. Unusable if this version has no such command."""
    from experiments.trials.trial import SHOW

    if study not in SHOW:
        raise Unusable(folder, NEWER, f"was made by exchange {study}, which this version does not have")
    return SHOW[study]
