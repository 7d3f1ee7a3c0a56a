"""`exchange compare`: which transport is faster, by how much, and how sure that is."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from experiments.options import (
    Cpus,
    Rate,
    broker_options,
    json_option,
    results_option,
    session_options,
    stream_options,
    terms_options,
)

WITH_RESUME = {"resume", "results", "as_json"}


class Listed(click.ParamType[list[Any]]):
    """Values of one type, with commas between them."""

    name = "list"

    def __init__(self, of: click.ParamType[Any]) -> None:
        self._of = of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        if isinstance(value, list):
            return value
        return [self._of.convert(part.strip(), param, ctx) for part in str(value).split(",") if part.strip()]


@click.command()
@click.option("--transports", type=Listed(click.STRING), default="zeromq,tcp", show_default=True,
              metavar="SCHEME,SCHEME[,...]", help="What to compare: two or more.")  # fmt: skip
@click.option("--rates", type=Listed(Rate()), default="1000,2000,4000,8000,16000", show_default=True,
              metavar="RATE[,...]", help="Offered loads, orders a second, or max.")  # fmt: skip
@click.option("--repeats", type=int, default=10, show_default=True, help="Runs of each transport at each rate.")
@click.option("--seconds", type=click.FloatRange(0.01, 10**6), default=5.0, show_default=True,
              help="How long a run offers orders; their number is seconds times rate.")  # fmt: skip
@stream_options
@terms_options
@broker_options
@session_options
@click.option("--warm-up", "warm_up_s", type=float, default=0.0, show_default=True,
              help="Seconds that analysis leaves out of each run.")  # fmt: skip
@click.option("--cpus", type=Cpus(), default={}, help="Where components stay, as gateway=0,engine=1.")
@results_option
@click.option("--name", help="The comparison's folder in DIR.  [default: time and compare]")
@click.option("--resume", metavar="NAME", help="Go on with a comparison that was interrupted.")
@click.option("--dry-run", is_flag=True, help="Print the plan and how long it takes; run nothing.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, transports: list[str], rates: list[float | None], repeats: int, seconds: float, results: str,
    name: str | None, resume: str | None, dry_run: bool, as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Compare transports at the same rates: interleaved repeats, medians with intervals, and a verdict a row.

    Example: exchange compare --transports zeromq,tcp --rates 1000,4000,16000 --repeats 10
    """
    from exchange.settings import BadSetting
    from experiments.compare import comparing
    from experiments.compare.arms import comparison_arms
    from experiments.trials.plan import Plan

    if resume is not None:
        nothing_beside_resume(ctx)
        raise SystemExit(comparing.resume(results, resume, as_json))
    arms = comparison_arms(transports, rates, seconds, given)
    try:
        plan = Plan(arms=arms, repeats=repeats, seed=given["seed"])
    except BadSetting as error:
        raise click.UsageError(str(error)) from error
    raise SystemExit(comparing.show_plan(plan, as_json) if dry_run else comparing.compare(plan, results, name, as_json))


def nothing_beside_resume(ctx: click.Context) -> None:
    """A comparison goes on as it was planned, or its arms would not be comparable."""
    typed = [name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    extra = [name for name in typed if name not in WITH_RESUME]
    if extra:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(extra))
        raise click.UsageError(f"--resume goes on as it was planned: leave out {options}")
