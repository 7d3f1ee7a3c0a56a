"""A trial's folder: plan.json is written first, comparison.json whenever the command ends; its runs are inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from exchange.json_records import NEWER, Record
from exchange.record_kinds import ComparisonRecord, PlanRecord
from exchange.unique import unique
from exchange.words import printable
from exchange_simulation.cli.results.difference import differing, differing_parts, print_lines, print_rows
from exchange_simulation.cli.results.kind import FolderKind, ListedFolder, unusable_row
from exchange_simulation.cli.results.rerun import refuse_journal_elsewhere, warn_of_differences
from exchange_simulation.cli.trial_tables import make_tables
from exchange_simulation.launching.record.noise_summary import noise_of
from exchange_simulation.launching.record.reading import UNFINISHED, Unusable, damage_named, read_record
from exchange_simulation.reports.formats.estimates import with_middle_half
from transports.registry import scheme_of

PLAN = "plan.json"
SIDES = ("first", "second")


class TrialKind(FolderKind):
    name = "trial"
    file = "comparison.json"
    record = ComparisonRecord
    marks = (PLAN, file)
    page = "comparison.html"
    reported_by = "exchange_simulation.experiments.trials.trial:report_trial"
    fields = ("study", "seed", "repeats")
    conditions_title = "plan and conditions that differ"
    no_conditions = "plan, host and versions are the same"
    caveat = (
        "Trials were made at different times, so what differs may be the machine's: only arms of one trial are held "
        "against each other. Use exchange compare."
    )

    def read(self, folder: Path) -> Record:
        """Return comparison.json's content. Unusable if the trial goes on or was killed, or its record is unusable."""
        if (folder / self.file).exists():
            return super().read(folder)
        plan = _plan_record(folder)
        raise Unusable(
            folder,
            UNFINISHED,
            f"has no {self.file}: {_finished_runs(folder, plan)} of {len(plan['order'])} runs are there; where it does "
            f"not go on, exchange {_study_of(plan)} --resume {folder.name} does",
        )

    def _recorded_row(self, folder: Path) -> ListedFolder:
        """Return the folder's line in the list. Without a usable record, the line comes from the plan."""
        try:
            with damage_named(folder):
                plan = _plan_record(folder)
                planned = _planned_row(folder, plan)
        except Unusable as error:
            return unusable_row(folder, self.name, error)
        row = super()._recorded_row(folder)
        if row.reason is None:
            return row
        runs = _finished_runs(folder, plan)
        return replace(planned, status=row.status, reason=row.reason, runs=runs, last_written_at=row.last_written_at)

    def row_of(self, folder: Path, record: Record) -> ListedFolder:
        runs = sum(len(arm["runs"]) for arm in record["arms"])
        planned = _planned_row(folder, _plan_record(folder))
        started_at = record["conditions"].get("started_at")
        is_noisy = noise_of(record).is_noisy
        return replace(planned, status=record["status"], started_at=started_at, runs=runs, is_noisy=is_noisy)

    def show(self, folder: Path, record: Record) -> None:
        _printer_of(folder, record["study"])(record)

    def head(self, record: Record) -> Record:
        head = {name: record[name] for name in ("name", "study", "status", "caveats")}
        return {**head, "started_at": record["conditions"].get("started_at")}

    def head_lines(self, head: Record) -> Iterator[str]:
        yield f"{head['status']}, by exchange {head['study']}, started {head['started_at'] or 'at an unknown time'}"
        yield from head["caveats"]

    def conditions(self, first: Record, second: Record) -> list[Record]:
        """Return differences of the plans, of the runs' conditions, and of the settings of arms in both trials."""
        conditions_of_runs = differing_parts(
            first["conditions"], second["conditions"], {"host": None, "versions": None}
        )
        return [
            *differing(first, second, names=self.fields),
            *conditions_of_runs,
            *_settings(_arms_in_both(first, second)),
        ]

    def condition_rows(self, difference: Record) -> Iterator[Record]:
        """Add the arms' labels to a setting in which only some arms differ."""
        for row in difference["conditions"]:
            if "arms" in row and len(row["arms"]) < len(difference["arms"]):
                yield {**row, "field": f"{row['field']} of {', '.join(row['arms'])}"}
            else:
                yield row

    def findings(self, first: Record, second: Record) -> Record:
        """`arms` are those that both trials have; an estimate that was not measured is absent."""
        first_labels = [arm["label"] for arm in first["arms"]]
        second_labels = [arm["label"] for arm in second["arms"]]
        return {
            "only_in": {
                "first": [label for label in first_labels if label not in second_labels],
                "second": [label for label in second_labels if label not in first_labels],
            },
            "judged": unique(verdict["metric"] for verdict in [*first["verdicts"], *second["verdicts"]]),
            "metrics": {**first["metrics"], **second["metrics"]},
            "arms": [
                {"label": one["label"], "first": _estimates(one), "second": _estimates(other)}
                for one, other in _arms_in_both(first, second)
            ],
        }

    def show_findings(self, difference: Record) -> None:
        """Print the metrics that have a verdict, or all metrics if none has one."""
        for metric in difference["judged"] or list(difference["metrics"]):
            about = difference["metrics"][metric]
            rows = list(_medians(difference, metric))
            if rows:
                print_rows(f"{about['title']}, {about['unit']}", rows, lambda _, estimate: with_middle_half(estimate))
        print_lines(*_arm_lines(difference))

    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool | None, as_json: bool) -> int:
        """Run the plan again, and make the tables of all its runs."""
        _printer_of(folder, _study_of(_plan_record(folder)))
        from exchange_simulation.experiments.trials.plan import read_plan
        from exchange_simulation.experiments.trials.trial import run_trial

        plan = replace(read_plan(folder), resumed=0)
        for arm in plan.arms:
            refuse_journal_elsewhere(folder, arm.settings)
        try:
            warn_of_differences(self.read(folder)["conditions"])
        except Unusable:
            click.echo(printable(f"{folder} has no record of its host and versions"), err=True)
        trial = run_trial(plan, results, name, as_json)
        make_tables(trial, with_spark is False, as_json)
        return trial.exit_code


def _planned_row(folder: Path, plan: Record) -> ListedFolder:
    settings = [arm["settings"] for arm in plan["arms"]]
    return ListedFolder(
        name=folder.name,
        what=_study_of(plan),
        status=UNFINISHED,
        transports=tuple(unique(scheme_of(of_arm["transport"]) for of_arm in settings)),
        orders_per_s=tuple(unique(of_arm["orders_per_s"] for of_arm in settings)),
        repeats=plan["repeats"],
        planned_runs=len(plan["order"]),
    )


def _plan_record(folder: Path) -> Record:
    """Return plan.json's content. Unusable if there is none that this version knows."""
    return read_record(folder / PLAN, PlanRecord)


def _study_of(plan: Record) -> str:
    """Return the command that made the plan. A plan without a name is from a version that only had `compare`."""
    return str(plan.get("study") or "compare")


def _finished_runs(folder: Path, plan: Record) -> int:
    """Return how many planned runs have left a record. A run's folder is named PLANNED-DIGITS."""
    finished = {path.parent.name.rpartition("-")[0] for path in folder.glob("*/run.json")}
    return len(finished & set(plan["order"]))


def _printer_of(folder: Path, study: str) -> Callable[[Record], None]:
    """Return the function that prints a study's record. Unusable if this version has no such command."""
    from exchange_simulation.experiments.trials.trial import SHOW

    if study not in SHOW:
        raise Unusable(folder, NEWER, f"was made by exchange {study}, which this version does not have")
    return SHOW[study]


def _arms_in_both(first: Record, second: Record) -> list[tuple[Record, Record]]:
    """Return pairs of arms with the same label, one from each trial."""
    others = {arm["label"]: arm for arm in second["arms"]}
    return [(arm, others[arm["label"]]) for arm in first["arms"] if arm["label"] in others]


def _settings(arms: list[tuple[Record, Record]]) -> Iterator[Record]:
    """Yield the settings in which arms of one label differ; a difference that several arms share is one line."""
    rows: dict[str, Record] = {}
    for first, second in arms:
        for difference in differing(first["settings"], second["settings"], prefix="settings."):
            row = rows.setdefault(repr(difference), {**difference, "arms": []})
            row["arms"].append(first["label"])
    yield from rows.values()


def _estimates(arm: Record) -> dict[str, Any]:
    metrics = {}
    for name, estimate in arm["metrics"].items():
        metrics[name] = {field: estimate[field] for field in ("median", "low", "high", "by_repeat")}
    return {"runs": len(arm["runs"]), "held": arm["held"], "metrics": metrics}


def _medians(difference: Record, metric: str) -> Iterator[Record]:
    """Yield each arm's estimates in both trials."""
    for arm in difference["arms"]:
        estimates = {side: arm[side]["metrics"][metric] for side in SIDES if metric in arm[side]["metrics"]}
        if estimates:
            yield {"field": arm["label"], **estimates}


def _arm_lines(difference: Record) -> Iterator[str]:
    """Yield a line about arms that only one trial has, and about arms whose rate was not held."""
    if not difference["arms"]:
        yield "no arm is in both"
    for letter, side in (("A", "first"), ("B", "second")):
        only = difference["only_in"][side]
        if only:
            yield f"only in {letter}: {', '.join(only)}"
        not_held = [arm["label"] for arm in difference["arms"] if arm[side]["held"] is False]
        if not_held:
            yield f"in {letter} the rate was not held by: {', '.join(not_held)}"
