"""`exchange nagle`: what Nagle's algorithm does to completion time and to packets."""

from __future__ import annotations

from typing import Any

import click

from cli.command import Command
from cli.trial_options import (
    folder_options,
    named_as_typed,
    nothing_beside_resume,
    rate_trial_options,
    resume_from,
    show_or_run,
)
from runs.option_types import USUAL, Listed, Rate, Scheme
from runs.options import json_option, network_option, results_option, session_options, topology_option


@click.command(cls=Command)
@click.option("--transports", type=Listed(Scheme()), default="tcp,zeromq,amqp", show_default=True,
              metavar="SCHEME[,...]", help="Over what: those with TCP sockets.")  # fmt: skip
@click.option("--rates", type=Listed(Rate()), default="1000,2000,4000,6000,8000", show_default=True,
              metavar="RATE[,...]", help="Offered loads, orders a second.")  # fmt: skip
@click.option("--roles", type=Listed(click.STRING), default=USUAL, show_default=True, metavar="LEVEL[,...]",
              help="Where Nagle's algorithm is on, each against off: roles joined by +, all, or usual: the "
                   "broker alone, as in the paper, and all where there is none.")  # fmt: skip
@rate_trial_options
@topology_option
@network_option
@session_options
@results_option
@folder_options
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, transports: list[str], rates: list[float | None], roles: list[str], repeats: int,
    seconds: float, resume: str | None, redo_noisy: bool, until_decided: bool, max_repeats: int | None, dry_run: bool,
    results: str, name: str | None, no_spark: bool, as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Nagle's algorithm off and on, over each transport at each rate: completion time, packets, and a verdict.

    Example: exchange nagle --transports tcp,zeromq,amqp --rates 1000,2000,4000,6000,8000 --repeats 10
    """
    from experiments.comparison_arms import nagle_arms
    from experiments.trials.plan import Plan
    from experiments.trials.study import NAGLE

    if resume is not None:
        nothing_beside_resume(ctx)
        raise SystemExit(resume_from(results, resume, NAGLE, no_spark, as_json))
    with named_as_typed():
        arms = nagle_arms(transports, rates, roles, seconds, given)
        plan = Plan(arms=arms, repeats=repeats, seed=given["seed"], study=NAGLE)
    raise SystemExit(
        show_or_run(plan, redo_noisy=redo_noisy, until_decided=until_decided, max_repeats=max_repeats,
                    dry_run=dry_run, results=results, name=name, no_spark=no_spark, as_json=as_json)
    )  # fmt: skip
