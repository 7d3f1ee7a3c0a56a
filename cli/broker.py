"""`exchange broker`: a private RabbitMQ node that stays up for several runs."""

from __future__ import annotations

import click

from runs.options import json_option


@click.group()
def command() -> None:
    """A private RabbitMQ for several runs: on loopback, in a folder of its own, one per user.

    Example: exchange broker start; exchange run --transport amqp; exchange broker stop
    """


@command.command()
@click.option("--nodelay/--no-nodelay", default=None, help="TCP_NODELAY of accepted sockets.  [default: nodelay]")
@click.option(
    "--memory-mark",
    type=float,
    metavar="SHARE|BYTES",
    help="Publishers pause above it: a share of the memory up to 1, or bytes.  [default: 0.4]",
)
def start(nodelay: bool | None, memory_mark: float | None) -> None:
    """Start it, or say that it is up."""
    from cli.standing_broker import start

    start(nodelay=nodelay, memory_mark=memory_mark)


@command.command()
@json_option
def status(as_json: bool) -> None:
    """Print the broker's address and what it has used, on one line; exit code 1 if none is up."""
    from cli.standing_broker import status

    raise SystemExit(status(as_json))


@command.command()
def stop() -> None:
    """Stop it, and remove everything of it."""
    from cli.standing_broker import stop

    stop()
