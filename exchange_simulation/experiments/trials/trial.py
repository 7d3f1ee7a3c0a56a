"""A trial from its plan to its record, table and page, and the report of a trial's folder."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import click

from exchange.words import counted
from exchange_simulation.experiments.trials.execution import Measure, Progress, execute, measure_with_page, to_do
from exchange_simulation.experiments.trials.observations import is_warm_up
from exchange_simulation.experiments.trials.plan import (
    WARM_UP,
    TrialPlan,
    TrialStep,
    expected_s,
    plan_as_dict,
    read_plan,
    write_plan,
)
from exchange_simulation.experiments.trials.results import FILE, results
from exchange_simulation.experiments.trials.study import COMPARE, NAGLE, SWEEP, Study
from exchange_simulation.experiments.trials.verdicts import detectable, unreachable
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import dated_name, new_run_folder, write_json
from exchange_simulation.launching.interrupts import ended_as_by_ctrl_c
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.notices import has_listener, say
from exchange_simulation.reports.comparison.arm_rows import arm_rows
from exchange_simulation.reports.comparison.figures import trial_figures
from exchange_simulation.reports.comparison.page import write_page
from exchange_simulation.reports.comparison.paper_figures import paper_figures
from exchange_simulation.reports.comparison.table import show, show_nagle
from exchange_simulation.reports.drawing.figures import write_figures
from exchange_simulation.reports.exports import print_json
from exchange_simulation.reports.report import ReportOptions, print_measured, print_report
from exchange_simulation.reports.tables import columns

SHOW: dict[str, Callable[[dict[str, Any]], None]] = {COMPARE.name: show, NAGLE.name: show_nagle, SWEEP.name: show}
"""Functions that print a trial's record, by study."""


def show_plan(plan: TrialPlan, as_json: bool, results: str) -> int:
    """Print what would be run. Returns the exit code, 0."""
    if as_json:
        print_json(plan_as_dict(plan))
    else:
        steps = [*plan.warm_ups, *plan.steps]
        _print([*announcement(plan, steps, Path(results)), *listing(steps)])
    return 0


Announce = Callable[[Iterable[str]], None]


class Trial(NamedTuple):
    """A trial whose runs were made, with its record and page written."""

    folder: Path
    plan: TrialPlan
    record: dict[str, Any]
    page: Path
    is_whole: bool
    """False if a signal ended it early."""

    @property
    def exit_code(self) -> int:
        """0, or 1 if a planned run is missing."""
        return 0 if self.record["status"] == "complete" else 1


def run_trial(plan: TrialPlan, parent: str, name: str | None, as_json: bool) -> Trial:
    """Make a new trial and show it."""
    return _show(new_trial(plan, parent, name, partial(_print, to_stderr=as_json)), as_json)


def resume_trial(parent: str, name: str, as_json: bool, study: Study = COMPARE) -> Trial:
    """Make the missing runs of an interrupted trial, and show it."""
    folder = Path(parent) / name
    plan = read_plan(folder)
    if plan.study is not study:
        raise UserError(
            f"{folder} was made by exchange {plan.study.name}: type exchange {plan.study.name} --resume {name}"
        )
    with _alone(folder), ended_as_by_ctrl_c():
        if to_do(folder, plan) or (plan.next_look and results(folder, plan)["undecided"]):
            if plan.resumed is not None:
                plan = replace(plan, resumed=plan.resumed + 1)
            write_plan(folder, plan)
        return _show(_run_trial(folder, plan, partial(_print, to_stderr=as_json)), as_json)


def new_trial(plan: TrialPlan, parent: str, name: str | None, announce: Announce) -> Trial:
    """Make the runs of a plan in a new folder of `parent`. UserError if runs cannot start.

    The folder stays if a run that counts was measured; otherwise nothing is left behind.
    """
    folder = new_run_folder(Path(parent), name or dated_name(plan.study.name))
    write_plan(folder, plan)
    try:
        with _alone(folder), ended_as_by_ctrl_c():
            return _run_trial(folder, plan, announce)
    except UserError:
        if all(is_warm_up(path.parent) for path in folder.glob("*/run.json")):
            shutil.rmtree(folder)
        raise


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the trial: runs of two processes would measure each other. UserError if another process makes its runs."""
    with (folder / ".lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"another process makes the runs of {folder}: wait until it has ended") from error
        yield


def _run_trial(folder: Path, plan: TrialPlan, announce: Announce) -> Trial:
    """Make the missing runs, then the trial's record and page."""
    with Brokers() as brokers:
        ended, record = _until_decided(folder, plan, partial(measure_with_page, brokers=brokers), announce)
    return Trial(folder, plan, record, write_page(folder, record), ended)


def _show(trial: Trial, as_json: bool) -> Trial:
    """Print the trial's record."""
    study = trial.plan.study
    record = trial.record
    rows = arm_rows(record) if study.rows_as_json else record
    print_measured(rows, as_json, partial(SHOW[study.name], record), trial.page)
    if not trial.is_whole:
        again = f"exchange {study.name} --resume {trial.folder.name}"
        click.echo(f"interrupted; what was measured is kept: {again} goes on", err=True)
    return trial


def _until_decided(folder: Path, plan: TrialPlan, measure: Measure, announce: Announce) -> tuple[bool, dict[str, Any]]:
    """Make the runs up to the plan's next look, and further ones while rows are undecided: (whether it ended, record).

    Without looks, that is every run of the plan.
    """
    while True:
        steps = to_do(folder, plan)
        announce(announcement(plan, steps, folder.parent))
        ended = execute(folder, plan, steps, measure, Progress(steps))
        record = _write_results(folder, plan)
        further = plan.next_look
        if not ended or further is None or not record["undecided"]:
            return ended, record
        undecided = f"{record['undecided']} of {counted(len(record['verdicts']), 'rows')} undecided"
        announce([f"{undecided} after {counted(plan.repeats, 'repeats')}; going on to {further.repeats}"])
        plan = further
        write_plan(folder, plan)


def _write_results(folder: Path, plan: TrialPlan) -> dict[str, Any]:
    record = results(folder, plan)
    write_json(folder / FILE, record)
    return record


def _print(sentences: Iterable[str], to_stderr: bool = False) -> None:
    for sentence in sentences:
        if has_listener():
            say(sentence)
        else:
            click.echo(sentence, err=to_stderr)


def announcement(plan: TrialPlan, steps: Sequence[TrialStep], results: Path | None = None) -> Iterator[str]:
    """The number of runs, the expected time, and the smallest difference that the plan finds, or that it finds none.

    `results` is the folder of earlier trials, which tell how far repeats scatter.
    """
    warm_ups = sum(step.repeat == WARM_UP for step in steps)
    remaining = len(steps) - warm_ups
    left = f", {remaining} of them left" if remaining < len(plan.steps) else ""
    yield _folded(
        f"{_contenders(plan)}; {counted(len(plan.blocks), f'{plan.study.block}s')}, "
        f"{counted(plan.repeats, 'repeats')}: {counted(len(plan.steps), 'runs')}{left} and "
        f"{counted(warm_ups, 'warm-ups')}, about {duration(expected_s(plan, steps))}"
    )
    if plan.next_look:
        steps_at_most = plan.longest.steps
        yield _folded(
            f"while a row is undecided it doubles the repeats, up to {plan.looks[-1]:,}: in all "
            f"{counted(len(steps_at_most), 'runs')}, about {duration(expected_s(plan, steps_at_most))}"
        )
    if plan.redo:
        yield _folded(f"{plan.redo.in_words()} (--keep-noisy: never)")
    if warning := unreachable(plan):
        yield _folded(f"warning: {warning}")
    elif sentence := detectable(plan, results):
        yield _folded(sentence)


def _folded(sentence: str) -> str:
    return "\n".join(textwrap.wrap(sentence, columns()))


def _contenders(plan: TrialPlan) -> str:
    """The names of the contenders, or only their number if a name has several parts."""
    names = plan.contenders
    return ", ".join(names) if not any(", " in name for name in names) else counted(len(names), "contenders")


def listing(steps: Sequence[TrialStep]) -> Iterator[str]:
    """A line for each run, in order."""
    for step in steps:
        yield f"{'warm-up' if step.repeat == WARM_UP else f'repeat {step.repeat}':<10} {step.arm.label}"


def duration(seconds: float) -> str:
    """Seconds in a readable unit: 40 s, 3 min, 1.5 hours, 2 days."""
    for unit, unit_s, decimals in (("days", 86_400.0, 0), ("hours", 3_600.0, 1), ("min", 60.0, 0)):
        if seconds >= 1.5 * unit_s:
            return f"{seconds / unit_s:.{decimals}f} {unit}"
    return f"{seconds:.0f} s"


def report_trial(folder: Path, options: ReportOptions) -> int:
    """Make a trial's record, table, page and figure files from the runs in its folder. Returns the exit code, 0."""
    record = _write_results(folder, read_plan(folder))
    rows = arm_rows(record)
    return print_report(
        folder,
        "trial",
        record,
        json_value=rows,
        csv_rows=rows,
        options=options,
        show=SHOW[record["study"]],
        write_page=write_page,
        write_figures=lambda: write_figures(folder, chain(trial_figures(record), paper_figures(record))),
    )
