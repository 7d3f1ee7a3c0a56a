"""`exchange compare`: which transport is faster, by how much, and how sure that is."""

from __future__ import annotations

from typing import Any

import click

from cli.command import Command
from cli.trial_options import (
    folder_options,
    nothing_beside_resume,
    redo_option,
    repeat_options,
    until_decided_options,
    with_looks,
)
from runs.option_types import Cpus, Listed, Rate, Scheme
from runs.options import broker_options, json_option, results_option, session_options, stream_options, terms_options


@click.command(cls=Command)
@click.option("--transports", type=Listed(Scheme()), default="zeromq,tcp", show_default=True,
              metavar="SCHEME,SCHEME[,...]", help="What to compare: two or more.")  # fmt: skip
@click.option("--rates", type=Listed(Rate()), default="1000,2000,4000,8000,16000", show_default=True,
              metavar="RATE[,...]", help="Offered loads, orders a second, or max.")  # fmt: skip
@repeat_options
@redo_option
@until_decided_options
@stream_options
@terms_options
@broker_options
@session_options
@click.option("--warm-up", "warm_up_s", type=float, default=0.0, show_default=True,
              help="Seconds at a run's start that no figure counts.")  # fmt: skip
@click.option("--cpus", type=Cpus(), default={}, help="Where components stay, as gateway=0,engine=1.")
@results_option
@folder_options
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, transports: list[str], rates: list[float | None], repeats: int, seconds: float, results: str,
    name: str | None, resume: str | None, dry_run: bool, redo_noisy: bool, until_decided: bool,
    max_repeats: int | None, as_json: bool,
    **given: Any,
) -> None:  # fmt: skip
    """Compare transports at the same rates: interleaved repeats, medians with intervals, and a verdict a row.

    Example: exchange compare --transports zeromq,tcp --rates 1000,4000,16000 --repeats 10
    """
    from exchange.allowed import BadSetting
    from experiments.comparison_arms import comparison_arms
    from experiments.trials.plan import Plan
    from experiments.trials.trial import resume_trial, run_trial, show_plan

    if resume is not None:
        nothing_beside_resume(ctx)
        raise SystemExit(resume_trial(results, resume, as_json))
    arms = comparison_arms(transports, rates, seconds, given)
    try:
        plan = Plan(arms=arms, repeats=repeats, seed=given["seed"]).with_redo(redo_noisy)
        plan = with_looks(plan, until_decided, max_repeats)
    except BadSetting as error:
        raise click.UsageError(str(error)) from error
    raise SystemExit(show_plan(plan, as_json, results) if dry_run else run_trial(plan, results, name, as_json))
