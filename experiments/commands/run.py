"""`exchange run`: one run of the whole exchange, from random orders to a record, a table and a page."""

from __future__ import annotations

from typing import Any

import click

from experiments.options import (
    Cpus,
    broker_options,
    capture_option,
    json_option,
    nagle_option,
    network_option,
    pairs_option,
    reporters_option,
    results_option,
    run_settings,
    session_options,
    terms_options,
    topology_option,
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
@nagle_option
@topology_option
@network_option
@capture_option
@workload_options
@pairs_option
@reporters_option
@terms_options
@session_options
@click.option(
    "--warm-up", "warm_up_s", type=float, default=0.0, show_default=True, help="Seconds that analysis leaves out."
)
@click.option(
    "--cpus",
    type=Cpus(),
    default={},
    help="Where components stay, as gateway=0,engine=1,engine.2=2.",
)
@results_option
@click.option("--name", help="The run's folder in DIR.  [default: time, transport, rate]")
@click.option("--no-spark", is_flag=True, help="Leave out Spark's tables.")
@click.option("--no-page", is_flag=True, help="Leave out the page; `exchange report` makes it later.")
@click.option("--live", is_flag=True, help="Show the last minute as graphs in the terminal while it goes on.")
@click.option("--live-spark", is_flag=True, help="Show its seconds as Spark makes a table of them, in RUN/live/.")
@json_option
def command(
    results: str, name: str | None, no_spark: bool, no_page: bool, live: bool, live_spark: bool, as_json: bool,
    **given: Any,
) -> None:  # fmt: skip
    """Run the exchange once: gateway, matching engine and stats reporter over one transport.

    Example: exchange run --transport zeromq --rate 8000 --orders 80000
    """
    from experiments.run import run

    if (live or live_spark) and as_json:
        option = "--live" if live else "--live-spark"
        raise click.UsageError(f"{option} is for who looks on, --json for a program: leave one of them out")
    if live and live_spark:
        raise click.UsageError("--live and --live-spark both draw in the terminal: leave one of them out")
    settings = run_settings(**given)
    shown = {"live": live, "live_spark": live_spark, "as_json": as_json}
    raise SystemExit(run(settings, results, name, with_spark=not no_spark, with_page=not no_page, **shown))
