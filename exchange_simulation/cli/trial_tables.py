"""The tables that Spark makes of a trial's runs, once the trial has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exchange_simulation.launching.errors import left_out
from exchange_simulation.launching.interrupts import ended_as_by_ctrl_c
from exchange_simulation.reports.run.spark_tables import hand_over

if TYPE_CHECKING:
    from exchange_simulation.experiments.trials.trial import Trial


def make_tables(trial: Trial, no_spark: bool, as_json: bool) -> None:
    """Make the tables of the trial's runs, unless the trial was interrupted.

    Tables that cannot be made are said to be left out; the trial is none the worse for it.
    """
    if no_spark or not trial.is_whole:
        return
    with left_out("tables"), ended_as_by_ctrl_c() as interruption:
        hand_over(
            trial.folder,
            "exchange_simulation.experiments.pipeline.jobs:ingest_trial",
            str(trial.folder.parent / "tables"),
            f"exchange spark ingest {trial.folder.parent}",
            quiet=as_json,
        )
        interruption.forget()
