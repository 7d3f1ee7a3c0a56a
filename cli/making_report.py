"""A folder's report: of whichever kind it is."""

from __future__ import annotations

from pathlib import Path

from reports.asked import Asked
from runs.errors import UserError


def report(folder: Path, asked: Asked) -> int:
    """The exit code. UserError where the folder is no run's, trial's or benchmark's, or is damaged."""
    if (folder / "plan.json").exists():
        from experiments.trials.trial import report_trial

        return report_trial(folder, asked)
    if (folder / "bench.json").exists():
        from messaging.report import report_bench

        return report_bench(folder, asked)
    if (folder / "run.json").exists() or (folder / "spool").is_dir():
        from reports.run.report import report_run

        return report_run(folder, asked)
    raise UserError(
        f"{folder} is not a run's folder, which has run.json or a spool, nor a trial's, which has plan.json, nor a "
        "benchmark's, which has bench.json: give one that exchange run, compare, nagle or bench made"
    )
