"""`exchange tape`: the seeded order stream, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from exchange_simulation.launching.option_types import Count, Rate
from exchange_simulation.launching.options import options_for
from exchange_simulation.launching.typed_settings import run_settings


@click.command()
@click.option("--orders", type=Count(), default="1M", show_default=True, help="Number of orders.")
@click.option("--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@options_for("seed", "prices", "price_model", "max_price")
@click.option(
    "--rate",
    "orders_per_s",
    type=Rate(),
    help="Orders a second: write also when each is due, in a file beside the tape.",
)
@options_for("arrivals")
def command(output: Path, **given: Any) -> None:
    """Write the seeded order stream as 10-byte wire messages; with --rate, also their due times, in a file beside it.

    Example: exchange tape --orders 1000000 --seed 7 --output tape.bin
    """
    from exchange_simulation.launching.tape import write_tape

    write_tape(output, run_settings(**given))
