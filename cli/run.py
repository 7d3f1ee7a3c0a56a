"""`exchange run`: one run of the whole exchange, from random orders to a record, a table and a page."""

from __future__ import annotations

from typing import Any

import click

from runs.options import json_option, results_option, run_options, run_settings


@click.command()
@run_options
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
    from cli.running import run

    if (live or live_spark) and as_json:
        option = "--live" if live else "--live-spark"
        raise click.UsageError(f"{option} is for who looks on, --json for a program: leave one of them out")
    if live and live_spark:
        raise click.UsageError("--live and --live-spark both draw in the terminal: leave one of them out")
    settings = run_settings(**given)
    shown = {"live": live, "live_spark": live_spark, "as_json": as_json}
    raise SystemExit(run(settings, results, name, with_spark=not no_spark, with_page=not no_page, **shown))
