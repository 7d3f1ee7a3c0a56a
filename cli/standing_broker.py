"""Starts, shows and stops the private broker that stays up for several runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import click
import psutil

from runs.errors import UserError
from transports.rabbitmq import (
    NodeAddress,
    NodeSettings,
    RabbitMqError,
    reclaim,
    running_node,
    start_standing_node,
)

NONE_UP = "no broker is up; `exchange broker start` starts one"


def start(**asked: Any) -> None:
    """Start the broker, or say that it is up. UserError if one is up with other settings."""
    settings = {name: value for name, value in asked.items() if value is not None}
    with _sentences():
        node, is_new = start_standing_node(replace(NodeSettings(), **settings))
    _check_settings(node, settings)
    how = f"is up after {node.facts()['ready_after_s']:.1f} s" if is_new else "is up already"
    click.echo(f"{node.url} {how}, nodelay {str(node.facts()['settings']['nodelay']).lower()}")


def status(as_json: bool) -> int:
    """Print one line, or the figures as JSON; the exit code."""
    figures = _figures()
    if as_json:
        import orjson

        click.echo(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    elif figures is None:
        click.echo(NONE_UP, err=True)
    else:
        click.echo(_line(figures))
    return 1 if figures is None else 0


def stop() -> None:
    with _sentences():
        was_up = reclaim()
    click.echo("stopped, and removed" if was_up else "no broker was up")


def _check_settings(node: NodeAddress, asked: dict[str, Any]) -> None:
    has = node.facts()["settings"]
    if other := {name: has[name] for name, value in asked.items() if has[name] != value}:
        found = ", ".join(f"{name} {value}" for name, value in other.items())
        raise UserError(f"a broker is up with {found}: `exchange broker stop` it first")


def _figures() -> dict[str, Any] | None:
    """Figures that need no reply from the broker; None if no broker is up."""
    if (node := running_node()) is None:
        return None
    try:
        usage, began_s = node.usage(), psutil.Process(node.pid).create_time()
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
        + f"up {_duration(figures['uptime_s'])}, {figures['rss_bytes'] / 1e6:.0f} MB, {figures['cpu_s']:.1f} s of CPU"
    )


def _duration(seconds: float) -> str:
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if minutes else f"{seconds:.0f} s"


@contextmanager
def _sentences() -> Iterator[None]:
    try:
        yield
    except RabbitMqError as error:
        raise UserError(str(error)) from error
