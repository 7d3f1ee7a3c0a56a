"""`exchange broker`: a private RabbitMQ node that stays up for several runs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import click
import psutil

from exchange_simulation.cli.main import CommandGroup
from exchange_simulation.launching.errors import CannotStart, UserError, users_mistake
from exchange_simulation.launching.long_waits import said_if_long
from exchange_simulation.launching.options import json_option
from exchange_simulation.launching.record.machine import has_proc
from exchange_simulation.reports.exports import print_json
from exchange_simulation.reports.formats.times import duration_in_words
from transports.base import TransportError
from transports.rabbitmq import (
    NodeAddress,
    NodeDidNotStart,
    NodeSettings,
    RabbitMqError,
    reclaim,
    running_node,
    start_standing_node,
)

NONE_UP = "no broker is up; `exchange broker start` starts one"


@click.group(cls=CommandGroup)
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
    if not has_proc():
        raise UserError("a private broker needs /proc, which this machine hides: mount it")
    asked: dict[str, Any] = {"nodelay": nodelay, "memory_mark": memory_mark}
    settings = {name: value for name, value in asked.items() if value is not None}
    with users_mistake(TransportError), said_if_long("RabbitMQ to start"):
        try:
            node, is_new = start_standing_node(replace(NodeSettings(), **settings))
        except NodeDidNotStart as error:
            raise CannotStart(str(error)) from error
    _check_settings(node, settings)
    facts = node.facts()
    state = f"is up after {facts['ready_after_s']:.1f} s" if is_new else "is up already"
    click.echo(f"{node.url} {state}, nodelay {str(facts['settings']['nodelay']).lower()}")


@command.command()
@json_option
def status(as_json: bool) -> None:
    """Print the broker's address and what it has used, on one line; exit code 1 if none is up."""
    figures = _figures()
    if as_json:
        print_json(figures)
    elif figures is None:
        click.echo(NONE_UP, err=True)
    else:
        click.echo(_line(figures))
    raise SystemExit(1 if figures is None else 0)


@command.command()
def stop() -> None:
    """Stop it, and remove everything of it."""
    with users_mistake(RabbitMqError):
        was_up = reclaim()
    click.echo("stopped, and removed" if was_up else "no broker was up")


def _check_settings(node: NodeAddress, asked: dict[str, Any]) -> None:
    """UserError if the node, which was up already, has other settings than those that were asked for."""
    has = node.facts()["settings"]
    differing = [f"{name} {has[name]}" for name, value in asked.items() if has[name] != value]
    if differing:
        raise UserError(f"a broker is up with {', '.join(differing)}: `exchange broker stop` it first")


def _figures() -> dict[str, Any] | None:
    """Figures that need no reply from the broker; None if no broker is up."""
    node = running_node()
    if node is None:
        return None
    try:
        usage = node.usage()
        began_s = psutil.Process(node.pid).create_time()
    except (OSError, psutil.Error):  # the broker ended meanwhile
        return None
    return {
        "url": node.url,
        **node.facts(),
        "uptime_s": round(time.time() - began_s, 1),
        "cpu_s": usage.cpu_ns / 1e9,
        "rss_bytes": usage.rss_bytes,
        "max_rss_bytes": usage.max_rss_bytes,
    }


def _line(figures: dict[str, Any]) -> str:
    return (
        "{url}  {product} {version}, Erlang {erlang}, pid {pid}, ".format_map(figures)
        + f"up {duration_in_words(figures['uptime_s'])}, "
        + f"{figures['rss_bytes'] / 1e6:.0f} MB, {figures['cpu_s']:.1f} s of CPU"
    )
