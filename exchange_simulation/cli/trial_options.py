"""Options of commands that make a trial of runs: its repeats, its folder, and resuming it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from exchange_simulation.cli.gate_options import COMPARISON_OPTIONS, TypedGate
from exchange_simulation.cli.results.kinds import find
from exchange_simulation.cli.trial_tables import make_tables
from exchange_simulation.launching.idle_settings import refuse_idle_settings
from exchange_simulation.launching.option_types import Count, Seconds
from exchange_simulation.launching.options import (
    broker_options,
    no_spark_option,
    options_for,
    results_option,
    stream_options,
    terms_options,
    together,
)
from exchange_simulation.launching.setting_warnings import warn_of_spinning
from exchange_simulation.launching.typed_settings import naming_options, without_default_rate

if TYPE_CHECKING:
    from exchange_simulation.experiments.trials.plan import TrialPlan
    from exchange_simulation.experiments.trials.study import Study
    from exchange_simulation.experiments.trials.trial import Trial
    from exchange_simulation.gates.comparison_gate import ComparisonGate

OPTIONS_BESIDE_RESUME = {"resume", "results", "dry_run", "no_spark", "as_json", *COMPARISON_OPTIONS}
"""Parameters whose options may be given beside --resume. Other options would change the plan, which is kept."""
TRIAL_OPTIONS = OPTIONS_BESIDE_RESUME | {"redo_noisy", "until_decided", "max_repeats", "name"}
"""Parameters of a trial as a whole. A command's other parameters belong to the plan and its runs."""


repeat_options = together(
    [
        click.option("--repeats", type=Count(), default=10, show_default=True, help="Runs of each arm."),
        click.option(
            "--seconds",
            "--duration",
            type=Seconds(0.01, 10**6),
            default=5.0,
            show_default=True,
            help="How long a run offers orders; their number is seconds times rate.",
        ),
    ]
)
redo_option = click.option(
    "--redo-noisy/--keep-noisy",
    default=True,
    show_default=True,
    help="Make a run again if others took more than 5% of all processors beside it.",
)
until_decided_options = together(
    [
        click.option(
            "--until-decided",
            is_flag=True,
            help="Double the repeats while a row is undecided, at the same chance of a false verdict.",
        ),
        click.option(
            "--max-repeats",
            type=Count(),
            metavar="N",
            help="With --until-decided: stop after this many repeats.  [default: 4 x repeats]",
        ),
    ]
)
rate_trial_options = together(
    [
        repeat_options,
        redo_option,
        until_decided_options,
        stream_options,
        terms_options,
        broker_options,
        options_for("priority", "hosts"),
    ]
)
"""Options of trials of transports at rates."""
folder_options = together(
    [
        results_option,
        click.option("--name", help="The trial's folder in DIR.  [default: time and command]"),
        click.option("--resume", metavar="NAME", help="Go on with one that was interrupted."),
        click.option("--dry-run", is_flag=True, help="Print the plan and about how long it takes; run nothing."),
        no_spark_option,
    ]
)


def make_or_resume(
    ctx: click.Context,
    study: Study,
    plan_of: Callable[[dict[str, Any]], TrialPlan],
    confirm: Callable[[TrialPlan], None] = lambda _: None,
) -> NoReturn:
    """Show a plan, make its trial, or resume a trial, as the options say; then exit with the trial's code.

    `plan_of` makes a plan from the options that are not in TRIAL_OPTIONS; `confirm` is called before the first run.
    UsageError for options that exclude each other.
    """
    from exchange_simulation.experiments.trials.plan import read_plan
    from exchange_simulation.experiments.trials.trial import resume_trial, run_trial, show_plan, show_plan_of_rest

    trial_options = {name: value for name, value in ctx.params.items() if name in TRIAL_OPTIONS}
    plan_options = {name: value for name, value in ctx.params.items() if name not in TRIAL_OPTIONS}
    results: str = trial_options["results"]
    as_json: bool = trial_options["as_json"]
    no_spark: bool = trial_options["no_spark"]
    typed_gate = TypedGate.of_parameters(trial_options) if "fail_if" in trial_options else None
    if trial_options["resume"] is not None:
        _refuse_options_beside_resume(ctx)
        folder, _ = find(Path(results), trial_options["resume"])
        gate = typed_gate.for_plan(read_plan(folder)) if typed_gate else None
        if trial_options["dry_run"]:
            raise SystemExit(show_plan_of_rest(folder, as_json, study))
        trial = resume_trial(folder, as_json, study)
        raise SystemExit(_exit_code(trial, typed_gate, gate, no_spark, as_json))
    with naming_options():
        plan = plan_of(without_default_rate(plan_options))
        if typed_gate:
            plan = typed_gate.planned(plan)
        plan = plan.with_redo(trial_options["redo_noisy"])
        plan = _with_looks(plan, trial_options["until_decided"], trial_options["max_repeats"])
    refuse_idle_settings(typed_options(ctx), [arm.settings for arm in plan.arms])
    gate = typed_gate.for_plan(plan) if typed_gate else None
    warn_of_spinning(*(arm.settings for arm in plan.arms))
    if trial_options["dry_run"]:
        raise SystemExit(show_plan(plan, results, trial_options["name"], as_json))
    confirm(plan)
    trial = run_trial(plan, results, trial_options["name"], as_json)
    raise SystemExit(_exit_code(trial, typed_gate, gate, no_spark, as_json))


def _exit_code(
    trial: Trial, typed_gate: TypedGate | None, gate: ComparisonGate | None, no_spark: bool, as_json: bool
) -> int:
    """Judge the trial by the gate's conditions, make the tables of its runs, and return the exit code of all."""
    exit_code = trial.exit_code
    if typed_gate and gate:
        report = typed_gate.judged(gate, trial.folder, trial.record, to_stderr=as_json)
        exit_code = report.exit_code(exit_code)
    make_tables(trial, no_spark, as_json)
    return exit_code


def _with_looks(plan: TrialPlan, until_decided: bool, max_repeats: int | None) -> TrialPlan:
    """Return the plan; with --until-decided, a plan that goes on until every row is decided."""
    from exchange_simulation.experiments.trials.plan import MOST_REPEATS

    if not until_decided:
        if max_repeats is not None:
            raise click.UsageError("--max-repeats ends what --until-decided begins: give both")
        return plan
    if max_repeats is None:
        max_repeats = min(4 * plan.repeats, MOST_REPEATS)
    return plan.with_looks(max_repeats)


def is_given(ctx: click.Context, name: str) -> bool:
    """Return True if the command line, the environment or exchange.toml has the parameter."""
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT


def typed_options(ctx: click.Context) -> dict[str, Any]:
    """Return the options that the user typed, by parameter, without defaults."""
    sources = {ParameterSource.COMMANDLINE, ParameterSource.PROMPT}
    return {name: value for name, value in ctx.params.items() if ctx.get_parameter_source(name) in sources}


def _refuse_options_beside_resume(ctx: click.Context) -> None:
    """UsageError for other options beside --resume: a resumed trial keeps its plan, so its arms stay comparable."""
    extra = typed_options(ctx).keys() - OPTIONS_BESIDE_RESUME
    words = []
    for param in ctx.command.params:
        if param.name in extra:
            is_option = isinstance(param, click.Option)
            words.append(param.opts[0] if is_option else param.make_metavar(ctx).strip("[]"))
    if words:
        raise click.UsageError(f"--resume goes on as it was planned: leave out {', '.join(sorted(words))}")
