"""`exchange hosts`: whether the hosts of --hosts can take part in a run, and files that make a cluster of them."""

from __future__ import annotations

import click


@click.group()
def command() -> None:
    """The hosts of a run with --hosts: whether they can take part, and files for a cluster.

    Example: exchange hosts check hosts.toml
    """


@command.command("agent", hidden=True)
def serve_agent() -> None:
    """Answer a launcher on another host, over stdin and stdout."""
    from exchange_simulation.launching.hosts.agent import serve_launcher

    serve_launcher()


@command.command("relay", hidden=True)
def relay() -> None:
    """Start a component for a launcher on another host, and pass lines between the two."""
    from exchange_simulation.launching.hosts.relay import relay_component

    raise SystemExit(relay_component())
