"""`exchange sweep`: every combination of some settings, repeated, compared and reported."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from exchange_simulation.cli.command import Command, configured_values
from exchange_simulation.cli.trial_options import (
    TRIAL_OPTIONS,
    folder_options,
    make_or_resume,
    redo_option,
    typed_options,
    until_decided_options,
)
from exchange_simulation.experiments.sweep.keys import HELP_OF_SWEEP, shared_options
from exchange_simulation.launching.option_types import Count, Seconds
from exchange_simulation.launching.options import json_option


def _plan_alone(ctx: click.Context, _param: click.Parameter, file: Path | None) -> Path | None:
    """Take no default of the plan from exchange.toml or the environment if a file has the plan."""
    if file and ctx.default_map:
        ctx.default_map = {name: value for name, value in ctx.default_map.items() if name in TRIAL_OPTIONS}
    return file


@click.command(cls=Command)
@click.argument(
    "file",
    required=False,
    metavar="[FILE.toml]",
    type=click.Path(dir_okay=False, path_type=Path),
    is_eager=True,
    callback=_plan_alone,
)
@click.option("--example", is_flag=True, help="Print a file to start from: the paper's sweep.")
@click.option("--transports", metavar="SCHEME[,...]", help="Short for --vary transport=SCHEME[,...].")
@click.option("--rates", metavar="RATE[,...]", help="Short for --vary rate=RATE[,...].")
@click.option(
    "--gateways", "numbers_of_gateways", metavar="NUMBER[,...]", help="Short for --vary gateways=NUMBER[,...]."
)
@click.option("--engines", "numbers_of_engines", metavar="NUMBER[,...]", help="Short for --vary engines=NUMBER[,...].")
@click.option(
    "--subscribers",
    "numbers_of_subscribers",
    metavar="NUMBER[,...]",
    help="Short for --vary subscribers=NUMBER[,...].",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="NAME=VALUE[,...]",
    help="Any of the options of exchange run; every combination of values is an arm.",
)
@click.option("--repeats", type=Count(), help="Runs of each arm.  [default: 10]")
@click.option("--pause", "pause_s", type=Seconds(0, 3600), help="Seconds between two runs.  [default: 0.5]")
@redo_option
@until_decided_options
@folder_options
@click.option("--yes", is_flag=True, help="Start without asking, even if it takes more than a day.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, file: Path | None, example: bool, yes: bool, **_: Any) -> None:
    """Run every combination of some settings: interleaved repeats, medians with intervals, verdicts, a page.

    Example: exchange sweep --transports zeromq,amqp --rates 1000,2000,4000,6000,8000 --orders 1000000
    """
    from exchange_simulation.experiments.sweep.planning import EXAMPLE, confirm, planned
    from exchange_simulation.experiments.trials.study import SWEEP

    if example:
        click.echo(EXAMPLE.read_text(), nl=False)
        return

    make_or_resume(
        ctx, SWEEP, lambda _: planned(file, configured_values(ctx), typed_options(ctx)), partial(confirm, yes=yes)
    )


command.params += shared_options(help=HELP_OF_SWEEP)
