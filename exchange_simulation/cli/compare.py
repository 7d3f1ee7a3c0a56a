"""`exchange compare`: which transport is faster, by how much, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from exchange.instances import MAX_ENGINES, MAX_GATEWAYS, MAX_SUBSCRIBERS
from exchange_simulation.cli.command import Command
from exchange_simulation.cli.gate_options import comparison_gate_options
from exchange_simulation.cli.participant_options import numbers_option
from exchange_simulation.cli.trial_options import folder_options, is_given, make_or_resume, rate_trial_options
from exchange_simulation.launching.option_types import Cpus, Listed, Rate, Scheme, Seconds
from exchange_simulation.launching.options import json_option, options_for, session_options


@click.command(cls=Command)
@click.option(
    "--transports",
    type=Listed(Scheme()),
    default="zeromq,tcp",
    show_default=True,
    metavar="SCHEME,SCHEME[,...]",
    help="What to compare: two or more; with --against CHECKOUT one is enough.",
)
@click.option(
    "--rates",
    type=Listed(Rate()),
    default="1000,2000,4000,8000,16000",
    show_default=True,
    metavar="RATE[,...]",
    help="Offered loads, orders a second, or max.",
)
@numbers_option(
    "--gateways", "numbers_of_gateways", 1, MAX_GATEWAYS, "Numbers of gateways at one engine, which share the rate."
)
@numbers_option(
    "--engines", "numbers_of_engines", 1, MAX_ENGINES, "Numbers of engines, among which --instruments are shared out."
)
@options_for("instruments")
@numbers_option("--subscribers", "numbers_of_subscribers", 0, MAX_SUBSCRIBERS, "Numbers of subscribers to market data.")
@rate_trial_options
@session_options
@click.option(
    "--warm-up",
    "warm_up_s",
    type=Seconds(0),
    default=0.0,
    show_default=True,
    help="Seconds at a run's start that no figure counts.",
)
@click.option("--cpus", type=Cpus(), default={}, help="Processor of each component, as gateway=0,engine=1.")
@comparison_gate_options
@folder_options
@json_option
@click.pass_context
def command(ctx: click.Context, /, **_: Any) -> None:
    """Compare transports at the same rates: interleaved repeats, medians with intervals, and a verdict for each row.

    Example: exchange compare --transports zeromq,tcp --rates 1000,4000,16000 --repeats 10

    \b
    exchange compare --transports zeromq,amqp --rates 1k --fail-if "p99 of amqp over 20x zeromq"
    exchange compare --against main --fail-if-slower 10% --junit gate.xml --markdown gate.md
    exchange compare --transports zeromq --rates max --against ../main --fail-if-slower 5%
    """
    from exchange_simulation.experiments.comparison_arms import comparison_arms
    from exchange_simulation.experiments.trials.checkouts import is_checkout
    from exchange_simulation.experiments.trials.plan import TrialPlan
    from exchange_simulation.experiments.trials.study import COMPARE
    from exchange_simulation.gates.baseline_plan import plan_of_baseline
    from exchange_simulation.gates.baselines import Baseline, baseline_of

    def plan_of(given: dict[str, Any]) -> TrialPlan:
        against = ctx.params["against"]
        changes_arms = any(is_given(ctx, name) for name in given if name != "repeats")
        if against is not None and not changes_arms:
            baseline = baseline_of(Path(ctx.params["results"]), against)
            if isinstance(baseline, Baseline):
                return plan_of_baseline(baseline, given["repeats"] if is_given(ctx, "repeats") else None)
        transports = given.pop("transports")
        rates = given.pop("rates")
        repeats = given.pop("repeats")
        seconds = given.pop("seconds")
        gateways = given.pop("numbers_of_gateways")
        subscribers = given.pop("numbers_of_subscribers")
        engines = given.pop("numbers_of_engines")
        least_transports = 1 if against is not None and is_checkout(Path(against)) else 2
        arms = comparison_arms(
            transports, rates, seconds, given, gateways, subscribers, engines, least_transports=least_transports
        )
        return TrialPlan(arms=arms, repeats=repeats, seed=given["seed"])

    make_or_resume(ctx, COMPARE, plan_of)
