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
@options_for("arrivals", "mix")
def command(output: Path, **given: Any) -> None:
    """Write the seeded order stream as wire messages; with --rate, also their due times, in a file beside it.

    Example: exchange tape --orders 1000000 --seed 7 --output tape.bin

    \b
    exchange tape --mix exchange-core --price-model two-sided --output mixed.bin
    """
    from exchange_simulation.launching.tape import write_tape

    if given["mix"] is not None and given["orders_per_s"] is not None:
        raise click.UsageError("--mix makes a tape for exchange match, which has no due times: leave --rate out")
    write_tape(output, run_settings(**given))
