"""Decorators that give a command its options: those of the option table, and a few that many commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from exchange.declared import RUN
from exchange_simulation.launching.option_table import TABLE, F, Option


def together(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Return one decorator that gives a command all these options, in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def options_of(command: str) -> Callable[[F], F]:
    """Return a decorator with all options that the command has in the table."""
    return together([option.decorator for option in TABLE if command in option.commands])


def options_for(*fields: str) -> Callable[[F], F]:
    """Return a decorator with the options of these parameters, for commands that are not in the table."""
    return together([_row_of(field).decorator for field in fields])


def _row_of(field: str) -> Option:
    """Return the parameter's row of the table. If components have rows of their own, return that of `exchange run`."""
    rows = [option for option in TABLE if option.field == field]
    if len(rows) == 1:
        return rows[0]
    (row,) = [option for option in rows if option.commands >= RUN]
    return row


def refused_parameter(name: str, reason: str) -> click.Option:
    """Return a hidden option that other commands have, and that this command refuses with the reason."""

    def refuse(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(f"{name} is {value}; {reason}")

    return click.Option([name], hidden=True, expose_value=False, callback=refuse)


broker_options = options_for("amqp_client", "delivery")
stream_options = options_for("seed", "prices")
market_options = options_for("price_model", "max_price", "policy")
terms_options = options_for("policy", "max_price", "packing")
session_options = options_for("sampling_interval", "timeout_s")
topology_option = options_for("topology")
json_option = click.option("--json", "as_json", is_flag=True, help="Machine-readable output on stdout.")
no_spark_option = click.option(
    "--no-spark", is_flag=True, envvar="EXCHANGE_NO_SPARK", show_envvar=True, help="Leave out the tables for Spark."
)
spark_option = click.option(
    "--spark/--no-spark",
    "with_spark",
    default=False,
    help="Have Spark make tables of the run, and show the sampled orders' times.",
)
"""The option of commands that start Spark only with --spark."""
results_option = options_for("results")
