"""`exchange keys`: keys for runs that are encrypted and admit nobody else."""

from __future__ import annotations

import time
from pathlib import Path

import click

from exchange_simulation.launching.errors import UserError, sentence, writing


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--days", type=click.IntRange(1, 36_500), default=365, show_default=True, help="Days of validity.")
def command(folder: Path, days: int) -> None:
    """Make keys in a new folder DIR, for --secure DIR: CURVE for ZeroMQ, certificates for TCP and AMQP.

    Copy the folder to each host of a run. Whoever has it can take part, so copy it over SSH, and nowhere else.

    Example: exchange keys mine ; exchange run --secure mine
    """
    from transports.base import BadAddress, TransportError
    from transports.keys import make_keys

    try:
        with writing(folder):
            keys = make_keys(folder, days)
    except BadAddress as error:
        raise UserError(sentence(error)) from error
    except TransportError as error:
        raise click.ClickException(sentence(error)) from error
    until = time.strftime("%Y-%m-%d", time.localtime(keys.expiry_s))
    click.echo(f"keys until {until}: {folder}")
    click.echo(f"use them with: exchange run --secure {folder}")
