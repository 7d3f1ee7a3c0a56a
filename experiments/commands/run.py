"""`exchange run`: one run of the whole exchange, from random orders to a record, a table and a page."""

from __future__ import annotations

from typing import Any

import click

from experiments.options import (
    Cpus,
    broker_options,
    json_option,
    results_option,
    run_settings,
    session_options,
    terms_options,
    workload_options,
)


@click.command()
@click.option(
    "--transport",
    default="zeromq",
    show_default=True,
    metavar="SCHEME[://PLACE]",
    help="What carries the messages: zeromq, amqp, tcp, memory, ...; ports, and a broker, are found unless told where.",
)
@broker_options
@workload_options
@terms_options
@session_options
@click.option(
    "--warm-up", "warm_up_s", type=float, default=0.0, show_default=True, help="Seconds that analysis leaves out."
)
@click.option("--cpus", type=Cpus(), default={}, help="Where components stay, as gateway=0,engine=1.")
@results_option
@click.option("--name", help="The run's folder in DIR.  [default: time, transport, rate]")
@click.option("--no-spark", is_flag=True, help="Leave out Spark's tables.")
@json_option
def command(results: str, name: str | None, no_spark: bool, as_json: bool, **given: Any) -> None:
    """Run the exchange once: gateway, matching engine and stats reporter over one transport.

    Example: exchange run --transport zeromq --rate 8000 --orders 80000
    """
    from experiments.run import run

    raise SystemExit(run(run_settings(**given), results, name, with_spark=not no_spark, as_json=as_json))
