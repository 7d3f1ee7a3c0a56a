"""`exchange results`: what was run, when, on what; what differs; and once more from its own record."""

from __future__ import annotations

from pathlib import Path

import click

from runs.options import json_option

STATUSES = ("complete", "saturated", "invalid", "partial", "unfinished", "damaged", "newer")

results_option = click.option(
    "--results", default="results", show_default=True, metavar="DIR", help="Where runs and trials are kept."
)


@click.group()
def command() -> None:
    """What was run, when, on what; what differs; and once more from its own record.

    NAME is a folder's name in DIR, TRIAL/RUN, a path, or the end of one name alone.

    Example: exchange results list; exchange results show first
    """


@command.command("list")
@results_option
@click.option("--transport", metavar="SCHEME", help="Only what went over it.")
@click.option("--status", type=click.Choice(STATUSES), help="Only what ended so, or whose record is so.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the newest so many.")
@json_option
def list_results(results: str, transport: str | None, status: str | None, last: int | None, as_json: bool) -> None:
    """A line each, the newest last.

    p50 and p99 are of completion from due time.

    Example: exchange results list --transport amqp --last 10
    """
    from cli.looking_back.listing import show_list

    show_list(Path(results), transport, status, last, as_json)


@command.command()
@click.argument("name")
@results_option
@json_option
def show(name: str, results: str, as_json: bool) -> None:
    """A run or a trial, as its command presented it.

    Example: exchange results show first
    """
    from cli.looking_back.showing import show

    show(Path(results), name, as_json)


@command.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@results_option
@json_option
def diff(first: str, second: str, results: str, as_json: bool) -> None:
    """What differs between two runs, or two trials.

    Example: exchange results diff first second
    """
    from cli.looking_back.differing import show_difference

    show_difference(Path(results), first, second, as_json)


@command.command()
@click.argument("name")
@results_option
@click.option("--name", "new_name", metavar="NEW", help="The new folder in DIR.  [default: as for the first one]")
@click.option("--no-spark", is_flag=True, help="Leave out Spark's tables.")
@json_option
def rerun(name: str, results: str, new_name: str | None, no_spark: bool, as_json: bool) -> None:
    """Once more, with a run's settings or a trial's plan.

    Example: exchange results rerun first --name second
    """
    from cli.looking_back.rerunning import rerun

    raise SystemExit(rerun(results, name, new_name, with_spark=not no_spark, as_json=as_json))
