"""`exchange simulate`: the matching engine over many instruments at once, by Spark; no broker, no clock."""

from __future__ import annotations

from typing import Any

import click

from exchange_simulation.cli.idle_options import CheckedCommand
from exchange_simulation.cli.spark import session_options
from exchange_simulation.cli.standard_output import go_on_without_output
from exchange_simulation.launching.option_types import Count, Number
from exchange_simulation.launching.options import json_option, market_options, results_option, stream_options
from exchange_simulation.launching.typed_settings import naming_options


@click.command(cls=CheckedCommand)
@click.option(
    "--instruments", type=Count(), default="1000", show_default=True, help="Instruments, each with its own book."
)
@click.option("--orders", type=Count(), default="1e8", show_default=True, help="Orders of all instruments together.")
@stream_options
@market_options
@click.option(
    "--master",
    default="local[2]",
    show_default=True,
    metavar="URL",
    help="Who does it: a Spark master, as spark://host:7077, or none for this process alone.",
)
@click.option(
    "--partitions", type=Count(), help="Groups of instruments, matched one at a time by a core.  [default: by --orders]"
)
@click.option("--trades", is_flag=True, help="Also a table of trades.")
@click.option("--quotes", is_flag=True, help="Also a table of quotes: each change of the best prices.")
@click.option("--events", is_flag=True, help="Also tables of orders, trades, confirmations and quotes.")
@click.option(
    "--rate",
    "orders_per_s",
    type=Number(1e-3, 1e9),
    default=1_000,
    show_default=True,
    metavar="NUMBER",
    help="Orders a second of each instrument, for the times of its events.",
)
@click.option(
    "--tables",
    metavar="URL",
    help="Where these tables go: any file system that Spark reaches.  [default: DIR/NAME/market]",
)
@session_options
@results_option
@click.option("--name", help="The folder in DIR.  [default: time and command]")
@json_option
def command(
    master: str,
    partitions: int | None,
    trades: bool,
    quotes: bool,
    events: bool,
    orders_per_s: float,
    tables: str | None,
    settings: dict[str, str],
    results: str,
    name: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Match the seeded order streams of many instruments; the result does not depend on the master or on the
    number of partitions.

    Example: exchange simulate --instruments 1000 --orders 1e8
    """
    from exchange_simulation.experiments.simulate.simulate import WITHOUT_SPARK, simulate
    from exchange_simulation.experiments.simulate.simulation import Simulation

    go_on_without_output()
    with naming_options():
        simulation = Simulation(**given)
    asked = {"orders": events, "trades": events or trades, "confirmations": events, "quotes": events or quotes}
    chosen_tables = [table for table, is_asked in asked.items() if is_asked]
    if tables and not chosen_tables:
        raise click.UsageError("--tables is a place for events: give --trades, --quotes or --events, too")
    if master == WITHOUT_SPARK and settings:
        raise click.UsageError("--conf and --packages are Spark's, and --master none is without it")
    raise SystemExit(
        simulate(
            simulation,
            master,
            partitions,
            results,
            name,
            events=chosen_tables,
            orders_per_s=orders_per_s,
            tables=tables,
            as_json=as_json,
            settings=settings,
        )
    )
