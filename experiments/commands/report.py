"""`exchange report`: a run's page and tables, made again."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="RUN_FOLDER", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--no-spark", is_flag=True, help="Leave out Spark's tables.")
def command(folder: Path, no_spark: bool) -> None:
    """Make a run's page and tables from its folder: after a run by hand, or one that ended early.

    Example: exchange report results/first
    """
    from experiments.report import report

    raise SystemExit(report(folder, with_spark=not no_spark))
