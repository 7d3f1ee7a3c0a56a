"""`exchange nagle`: what Nagle's algorithm does to completion time and to packets."""

from __future__ import annotations

from typing import Any

import click

from exchange.scheduled_load import MAX_ORDERS
from exchange_simulation.cli.command import Command
from exchange_simulation.cli.trial_options import folder_options, make_or_resume, rate_trial_options
from exchange_simulation.launching.option_table import NOTATIONS
from exchange_simulation.launching.option_types import USUAL, Count, Listed, Rate, Scheme
from exchange_simulation.launching.options import json_option, session_options, topology_option
from exchange_simulation.launching.typed_settings import was_typed


@click.command(cls=Command)
@click.option(
    "--transports",
    type=Listed(Scheme()),
    default="tcp,zeromq,amqp",
    show_default=True,
    metavar="SCHEME[,...]",
    help="What carries the orders, over TCP sockets.",
)
@click.option(
    "--rates",
    type=Listed(Rate()),
    default="1000,2000,4000,6000,8000",
    show_default=True,
    metavar="RATE[,...]",
    help="Offered loads, orders a second.",
)
@click.option(
    "--roles",
    type=Listed(click.STRING),
    default=USUAL,
    show_default=True,
    metavar="LEVEL[,...]",
    help="Where Nagle's algorithm is on, each against off: roles joined by +, all, or usual: the "
    "broker alone, as in the paper, and all where there is none.",
)
@click.option(
    "--orders", type=Count(1, MAX_ORDERS), metavar="NUMBER", help="Orders of each run, in place of --seconds."
)
@rate_trial_options
@topology_option
@click.option(
    "--network",
    "networks",
    type=Listed(NOTATIONS["network"]),
    default="local",
    show_default=True,
    metavar="PROFILE[,...]",
    help="What joins the components; several are measured in turns, a line each: see exchange network list.",
)
@session_options
@folder_options
@json_option
@click.pass_context
def command(ctx: click.Context, /, **_: Any) -> None:
    """Nagle's algorithm off and on, over each transport at each rate: completion time, packets, and a verdict.

    Example: exchange nagle --transports tcp,zeromq,amqp --rates 1000,2000,4000,6000,8000 --repeats 10
    """
    from exchange_simulation.experiments.comparison_arms import nagle_arms
    from exchange_simulation.experiments.trials.plan import TrialPlan
    from exchange_simulation.experiments.trials.study import NAGLE

    def plan_of(given: dict[str, Any]) -> TrialPlan:
        transports = given.pop("transports")
        rates = given.pop("rates")
        repeats = given.pop("repeats")
        seconds = given.pop("seconds")
        roles = given.pop("roles")
        networks = given.pop("networks")
        if given["orders"] is not None and was_typed("seconds"):
            raise click.UsageError("--orders and --seconds both bound the runs: give one")
        arms = nagle_arms(transports, rates, roles, seconds, given, networks)
        return TrialPlan(arms=arms, repeats=repeats, seed=given["seed"], study=NAGLE)

    make_or_resume(ctx, NAGLE, plan_of)
