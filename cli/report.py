"""`exchange report`: make page, tables, figures and exports of a run, trial, benchmark, capacity or fault matrix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runs.errors import UserError
from runs.options import no_spark_option

if TYPE_CHECKING:
    from reports.exports import ReportOptions


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, executable=True, path_type=Path))
@no_spark_option
@click.option("--figures", is_flag=True, help="Every figure of the page as SVG, PNG and CSV, in figures/.")
@click.option("--hlog", is_flag=True, help="A run's completion times as an HdrHistogram log, completion.hlog.")
@click.option("--json", "as_json", is_flag=True,
              help="Print the record; of a trial or capacity, a row for each arm or probe.")  # fmt: skip
@click.option("--csv", "as_csv", is_flag=True, help="Print the same as CSV.")
def command(folder: Path, no_spark: bool, figures: bool, hlog: bool, as_json: bool, as_csv: bool) -> None:
    """Make the page of a run, trial, benchmark, capacity or fault matrix again from its FOLDER. A run by
    hand has no page until then.

    Example: exchange report results/first
    """
    from reports.exports import ReportOptions

    if as_json and as_csv:
        raise click.UsageError("--json and --csv both print to stdout: give one of them")
    asked = ReportOptions(with_spark=not no_spark, figures=figures, hlog=hlog, as_json=as_json, as_csv=as_csv)
    raise SystemExit(report(folder, asked))


def report(folder: Path, asked: ReportOptions) -> int:
    """Make the report of any kind of folder; return the exit code. UserError if the folder is damaged or not ours."""
    if (folder / "plan.json").exists():
        from experiments.trials.trial import report_trial

        return report_trial(folder, asked)
    if (folder / "bench.json").exists():
        from messaging.report import report_benchmark

        return report_benchmark(folder, asked)
    if (folder / "capacity.json").exists():
        from reports.capacity.page import report_capacity

        return report_capacity(folder, asked)
    if (folder / "faults.json").exists():
        from reports.faults.page import report_faults

        return report_faults(folder, asked)
    if (folder / "run.json").exists() or (folder / "spool").is_dir():
        from reports.run.page import report_run

        return report_run(folder, asked)
    raise UserError(
        f"{folder} is not a run's folder, which has run.json or a spool, nor a trial's, which has plan.json, nor a "
        "benchmark's, which has bench.json, nor a capacity's, which has capacity.json, nor a fault matrix', which has "
        "faults.json: give one that exchange run, compare, nagle, bench, capacity or faults made"
    )
