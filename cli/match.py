"""`exchange match`: the engine alone, over a tape."""

from __future__ import annotations

from pathlib import Path

import click

from runs.options import book_options, json_option, policy_options


@click.command()
@click.argument("tape", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--answers", type=click.Path(dir_okay=False, path_type=Path), help="Write the answers to this file.")
@book_options
@policy_options
@json_option
def command(
    tape: Path, answers: Path | None, capacity: int | None, with_ids: bool, policy: str, max_price: int, as_json: bool
) -> None:
    """Match a tape of orders and count the answers.

    Example: exchange match tape.bin --answers answers.bin --json
    """
    from cli.matching import match, show

    show(match(tape, answers, max_price=max_price, policy=policy, capacity=capacity, with_ids=with_ids), as_json)
