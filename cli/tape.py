"""`exchange tape`: the seeded order stream, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from runs.options import run_settings, stream_options, tape_options


@click.command()
@click.option("--orders", type=int, default=1_000_000, show_default=True, help="How many.")
@click.option("--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@stream_options
@tape_options
def command(output: Path, **given: Any) -> None:
    """Write the seeded order stream as 10-byte wire messages; with --rate, when each is due beside it.

    Example: exchange tape --orders 1000000 --seed 7 --output tape.bin
    """
    from runs.tape import write_tape

    write_tape(output, run_settings(**given))
