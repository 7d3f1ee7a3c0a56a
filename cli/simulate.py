"""`exchange simulate`: the matching engine over many instruments at once, by Spark; no broker, no clock."""

from __future__ import annotations

from typing import Any

import click

from runs.option_types import Count
from runs.options import json_option, market_options, naming_options, results_option, stream_options


@click.command()
@click.option(
    "--instruments", type=Count(), default="1000", show_default=True, help="How many, each with its own book."
)
@click.option("--orders", type=Count(), default="1e8", show_default=True, help="How many, all instruments together.")
@stream_options
@market_options
@click.option("--master", default="local[2]", show_default=True, metavar="URL",
              help="Who does it: a Spark master, as spark://host:7077, or none for this process alone.")  # fmt: skip
@click.option("--partitions", type=Count(), help="Parts that are done one by one.  [default: by --orders]")
@click.option("--trades", "with_trades", is_flag=True, help="Write every trade to Parquet, too.")
@results_option
@click.option("--name", help="The folder in DIR.  [default: time and command]")
@json_option
def command(
    master: str, partitions: int | None, with_trades: bool, results: str, name: str | None, as_json: bool, **given: Any
) -> None:
    """Match the seeded order streams of many instruments; the result does not depend on who does it, nor in how many
    parts.

    Example: exchange simulate --instruments 1000 --orders 1e8
    """
    from experiments.simulate.simulate import simulate
    from experiments.simulate.simulation import Simulation

    with naming_options():
        simulation = Simulation(**given)
    raise SystemExit(simulate(simulation, master, partitions, results, name, with_trades=with_trades, as_json=as_json))
