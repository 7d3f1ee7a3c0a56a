"""Make a trial from its plan: runs, record, table and page. Report a trial from its folder."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import click

from exchange.unique import unique
from exchange.words import counted
from exchange_simulation.experiments.trials.execution import (
    Measure,
    Progress,
    execute,
    measure_with_page,
    remaining_steps,
)
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
from exchange_simulation.launching.files import dated_name, new_run_folder, planned_place, write_json
from exchange_simulation.launching.folder_lock import locked
from exchange_simulation.launching.interrupts import interruption_noted
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.notices import has_listener, prints_one_line, say
from exchange_simulation.launching.record.noise_summary import noise_banner
from exchange_simulation.launching.transport_checks import check_server
from exchange_simulation.reports.comparison.answer import headline
from exchange_simulation.reports.comparison.arm_rows import arm_rows
from exchange_simulation.reports.comparison.figures import trial_figures
from exchange_simulation.reports.comparison.page import write_page
from exchange_simulation.reports.comparison.paper_figures import paper_figures
from exchange_simulation.reports.comparison.table import show, show_nagle
from exchange_simulation.reports.drawing.figures import write_figures
from exchange_simulation.reports.exports import print_json
from exchange_simulation.reports.gate_outcomes import remove_outcomes
from exchange_simulation.reports.report import ReportOptions, outcome_line, print_measured, print_report
from exchange_simulation.reports.tables import columns

SHOW: dict[str, Callable[[dict[str, Any]], None]] = {COMPARE.name: show, NAGLE.name: show_nagle, SWEEP.name: show}
"""Functions that print a trial's record, by study."""


def show_plan(plan: TrialPlan, parent: str, name: str | None, as_json: bool) -> int:
    """Print the plan of a new trial, and make no run. Returns the exit code, 0. UserError if its folder exists."""
    place = planned_place(Path(parent), name)
    return _show_plan(plan, [*plan.warm_ups, *plan.steps], Path(parent), place, as_json)


def show_plan_of_rest(folder: Path, as_json: bool, study: Study) -> int:
    """Print an interrupted trial's missing runs, and make none. Returns the exit code, 0. UserError as resuming."""
    plan = _plan_to_resume(folder, study)
    return _show_plan(plan, remaining_steps(folder, plan), folder.parent, f"the results are in {folder}", as_json)


def _show_plan(plan: TrialPlan, steps: Sequence[TrialStep], results: Path, place: str, as_json: bool) -> int:
    """Print what the plan's missing runs are, how long they take and where they go. Returns the exit code, 0."""
    if as_json:
        print_json(plan_as_dict(plan))
        return 0
    sentences = list(announcement(plan, steps, results))
    if prints_one_line():
        click.echo(" ".join(sentences[0].split()))
        return 0
    for line in [*sentences, place, *listing(steps)]:
        click.echo(line)
    return 0


Announce = Callable[[Iterable[str]], None]
"""A function that prints sentences before the runs."""


class Trial(NamedTuple):
    """A trial after its runs. Record and page are written."""

    folder: Path
    plan: TrialPlan
    record: dict[str, Any]
    page: Path
    is_whole: bool
    """False if a signal ended the trial early."""

    @property
    def exit_code(self) -> int:
        """0, or 1 if a planned run is missing."""
        return 0 if self.record["status"] == "complete" else 1


def run_trial(plan: TrialPlan, parent: str, name: str | None, as_json: bool) -> Trial:
    """Make a new trial and show it."""
    trial = new_trial(plan, parent, name, partial(_print, to_stderr=as_json))
    return _show(trial, as_json)


def resume_trial(folder: Path, as_json: bool, study: Study = COMPARE) -> Trial:
    """Make the missing runs of an interrupted trial, and show the trial. UserError if `study` made no such trial."""
    _plan_to_resume(folder, study)
    trial = resumed_trial(folder, partial(_print, to_stderr=as_json))
    return _show(trial, as_json)


def _plan_to_resume(folder: Path, study: Study) -> TrialPlan:
    """Return the plan of an interrupted trial. UserError if there is none, or another study made it."""
    plan = read_plan(folder)
    if plan.study is not study:
        command = f"exchange {plan.study.name}"
        raise UserError(f"{folder} was made by {command}: type {command} --resume {folder.name}")
    return plan


def resumed_trial(folder: Path, announce: Announce) -> Trial:
    """Make the missing runs of the interrupted trial in `folder`. UserError if there is none."""
    plan = read_plan(folder)
    with interruption_noted(), locked(folder):
        remove_outcomes(folder)
        if remaining_steps(folder, plan) or (plan.next_look and results(folder, plan)["undecided"]):
            if plan.resumed is not None:
                plan = replace(plan, resumed=plan.resumed + 1)
            write_plan(folder, plan)
        return _run_trial(folder, plan, announce)


def new_trial(plan: TrialPlan, parent: str, name: str | None, announce: Announce) -> Trial:
    """Make the runs of a plan in a new folder of `parent`. UserError if runs cannot start, or a server is missing.

    After a UserError the folder is kept if it has a run that counts, and removed otherwise.
    """
    for transport in unique(arm.settings.transport for arm in plan.arms):
        check_server(transport)
    with interruption_noted():
        folder = new_run_folder(Path(parent), name or dated_name(plan.study.name))
        write_plan(folder, plan)
        try:
            with locked(folder):
                return _run_trial(folder, plan, announce)
        except UserError:
            if all(is_warm_up(path.parent) for path in folder.glob("*/run.json")):
                shutil.rmtree(folder)
            raise


def _run_trial(folder: Path, plan: TrialPlan, announce: Announce) -> Trial:
    """Make the missing runs, then the trial's record and page."""
    with Brokers() as brokers:
        is_whole, record = _make_runs(folder, plan, partial(measure_with_page, brokers=brokers), announce)
    return Trial(folder, plan, record, write_page(folder, record), is_whole)


def _show(trial: Trial, as_json: bool) -> Trial:
    """Print the trial's record."""
    study = trial.plan.study
    record = trial.record
    rows = arm_rows(record) if study.rows_as_json else record
    line = outcome_line(headline(record), noise_banner(record, "runs"))
    print_measured(rows, as_json, partial(SHOW[study.name], record), trial.page, line)
    if not trial.is_whole:
        resume_command = f"exchange {study.name} --resume {trial.folder.name}"
        click.echo(f"interrupted; what was measured is kept: {resume_command} goes on", err=True)
    return trial


def _make_runs(folder: Path, plan: TrialPlan, measure: Measure, announce: Announce) -> tuple[bool, dict[str, Any]]:
    """Make all runs of the plan. While rows are undecided, make those up to the plan's next look too.

    Returns whether the runs came to their end (False after a signal), and the trial's record.
    """
    while True:
        steps = remaining_steps(folder, plan)
        announce(announcement(plan, steps, folder.parent))
        is_whole = execute(folder, plan, steps, measure, Progress(steps))
        record = _write_results(folder, plan)
        longer_plan = plan.next_look
        if not is_whole or longer_plan is None or not record["undecided"]:
            return is_whole, record
        undecided = f"{record['undecided']} of {counted(len(record['verdicts']), 'rows')} undecided"
        announce([f"{undecided} after {counted(plan.repeats, 'repeats')}; going on to {longer_plan.repeats}"])
        plan = longer_plan
        write_plan(folder, plan)


def _write_results(folder: Path, plan: TrialPlan) -> dict[str, Any]:
    """Write the trial's record, and return it."""
    record = results(folder, plan)
    write_json(folder / FILE, record)
    return record


def _print(sentences: Iterable[str], to_stderr: bool = False) -> None:
    """Give the sentences to the listener, if there is one; otherwise print them."""
    for sentence in sentences:
        if has_listener():
            say(sentence)
        else:
            click.echo(sentence, err=to_stderr)


def announcement(plan: TrialPlan, steps: Sequence[TrialStep], results: Path | None = None) -> Iterator[str]:
    """Yield the number of runs, the expected time, and the smallest difference that the plan is likely to find.

    If the plan has too few repeats for a verdict, yield a warning instead of the difference. `results` is the folder of
    earlier trials, which show how much figures vary from repeat to repeat.
    """
    warm_ups = len([step for step in steps if step.repeat == WARM_UP])
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
    too_few_repeats = unreachable(plan)
    if too_few_repeats:
        yield _folded(f"warning: {too_few_repeats}")
        return
    difference = detectable(plan, results)
    if difference:
        yield _folded(difference)


def _folded(sentence: str) -> str:
    """Return the sentence in lines of the terminal's width."""
    return "\n".join(textwrap.wrap(sentence, columns()))


def _contenders(plan: TrialPlan) -> str:
    """The names of the contenders, or only their number if a name has several parts."""
    names = plan.contenders
    if any(", " in name for name in names):
        return counted(len(names), "contenders")
    return ", ".join(names)


def listing(steps: Sequence[TrialStep]) -> Iterator[str]:
    """A line for each run, in order."""
    for step in steps:
        repeat = "warm-up" if step.repeat == WARM_UP else f"repeat {step.repeat}"
        yield f"{repeat:<10} {step.arm.label}"


def duration(seconds: float) -> str:
    """Return the seconds in a readable unit. For example: 40 s, 3 min, 1.5 hours, 2 days."""
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
