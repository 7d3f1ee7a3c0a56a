"""`exchange report`: make page, tables, figures and exports of a run, trial, benchmark, capacity or fault matrix."""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exchange_simulation.cli.results import results_option
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.options import spark_option

if TYPE_CHECKING:
    from exchange_simulation.reports.report import ReportOptions


@click.command()
@click.argument("name", metavar="FOLDER", type=click.Path())
@results_option
@spark_option
@click.option("--figures", is_flag=True, help="Every figure of the page as SVG, PNG and CSV, in figures/.")
@click.option("--hlog", is_flag=True, help="A run's completion times as an HdrHistogram log, completion.hlog.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the record; of a trial or capacity, a row for each arm or probe."
)
@click.option("--csv", "as_csv", is_flag=True, help="Print the same as CSV.")
def command(name: str, results: str, with_spark: bool, figures: bool, hlog: bool, as_json: bool, as_csv: bool) -> None:
    """Make the page of a run, trial, benchmark, capacity or fault matrix again from its FOLDER. A run by
    hand has no page until then.

    FOLDER is a path, or a name as in exchange results: a beginning or an end of it is enough.

    Example: exchange report results/first
    """
    from exchange_simulation.cli.results.kinds import find
    from exchange_simulation.reports.report import ReportOptions

    if as_json and as_csv:
        raise click.UsageError("--json and --csv both print to stdout: give one of them")
    options = ReportOptions(with_spark=with_spark, figures=figures, hlog=hlog, as_json=as_json, as_csv=as_csv)
    folder, _ = find(Path(results), name)
    raise SystemExit(report(folder, options))


def report(folder: Path, options: ReportOptions) -> int:
    """Make the report of any kind of folder; return the exit code. UserError if the folder is damaged or not ours."""
    from exchange_simulation.cli.results.kinds import known_kind
    from exchange_simulation.launching.record.reading import damage_named

    kind = known_kind(folder)
    if not kind.reported_by:
        raise UserError(f"{folder} is a {kind.name}, which has no report: exchange results show {folder} prints it")
    with damage_named(folder):
        return int(pkgutil.resolve_name(kind.reported_by)(folder, options))
