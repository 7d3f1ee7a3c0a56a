"""`exchange tape`: the seeded order stream, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.options import run_settings, stream_options

CHUNK_ORDERS = 1 << 20


@click.command()
@click.option("--orders", type=int, default=1_000_000, show_default=True, help="How many.")
@click.option("--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@stream_options
def command(output: Path, **given: Any) -> None:
    """Write the seeded order stream as 10-byte wire messages.

    Example: exchange tape --orders 1000000 --seed 7 --output tape.bin
    """
    from experiments.errors import cannot_write
    from experiments.whole_file import whole_file
    from experiments.words import counted
    from gateway.seeded_orders import SeededOrders

    settings = run_settings(**given)
    orders, count = SeededOrders.of(settings), settings.order_limit
    try:
        with whole_file(output) as tape:
            for first in range(1, count + 1, CHUNK_ORDERS):
                tape.write(orders.records(first, min(CHUNK_ORDERS, count + 1 - first)))
    except OSError as error:
        raise cannot_write(output, error) from error
    click.echo(f"{counted(count, 'orders')} of seed {settings.seed} in {output}", err=True)
