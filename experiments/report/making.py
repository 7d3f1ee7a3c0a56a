"""A folder's report: of whichever kind it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from experiments.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a report is to hold."""

    with_spark: bool = True
    figures: bool = False
    hlog: bool = False
    as_json: bool = False
    as_csv: bool = False

    @property
    def quiet(self) -> bool:
        """The record alone goes to stdout."""
        return self.as_json or self.as_csv


def report(folder: Path, asked: Asked) -> int:
    """The exit code. UserError where the folder is no run's, trial's or benchmark's, or is damaged."""
    if (folder / "plan.json").exists():
        from experiments.report.of_trial import report_trial

        return report_trial(folder, asked)
    if (folder / "bench.json").exists():
        from experiments.report.of_bench import report_bench

        return report_bench(folder, asked)
    if (folder / "run.json").exists() or (folder / "spool").is_dir():
        from experiments.report.of_run import report_run

        return report_run(folder, asked)
    raise UserError(
        f"{folder} is not a run's folder, which has run.json or a spool, nor a trial's, which has plan.json, nor a "
        "benchmark's, which has bench.json: give one that exchange run, compare, nagle or bench made"
    )
