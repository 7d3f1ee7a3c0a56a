"""`exchange network`: what networks a run can have on this machine."""

from __future__ import annotations

import click

from runs.options import json_option


@click.group()
def command() -> None:
    """The networks between a run's components: what this machine can emulate.

    Example: exchange network list
    """


@command.command("list")
@json_option
def list_networks(as_json: bool) -> None:
    """Each network with its rate, its delay, and how it is made here, or why it cannot be."""
    from cli.network_list import show

    show(as_json)
