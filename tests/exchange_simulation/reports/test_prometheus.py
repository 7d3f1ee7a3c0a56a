"""The samples of a comparison: each series once, and no percentile of too few orders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exchange.settings import RunSettings
from exchange_simulation.experiments.trials.arms import Factor, arms_of
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.experiments.trials.results import results
from exchange_simulation.reports.prometheus import Sample, samples_of_comparison
from tests.exchange_simulation.experiments.trials.sample_trials import plan, put


def record_of_trial(folder: Path, trial: TrialPlan) -> dict[str, Any]:
    for step in trial.steps:
        put(folder, step)
    return results(folder, trial)


def series(sample: Sample) -> str:
    return str(sample).rpartition(" ")[0]


def test_arms_of_a_sweep_that_differ_in_more_than_the_rate_are_different_series(tmp_path: Path) -> None:
    rates = Factor("orders_per_s", {"at 1,000 orders/s": 1000.0})
    packings = Factor("packing", {"unpacked": 1, "packed by 8": 8})
    transports = Factor("transport", {"zeromq": "zeromq", "tcp": "tcp"})
    trial = TrialPlan(arms=arms_of(RunSettings, [transports], [rates, packings]), repeats=1, seed=1)
    samples = list(samples_of_comparison(record_of_trial(tmp_path, trial)))
    names = [series(sample) for sample in samples]
    assert len(set(names)) == len(names)
    assert any('block="at 1,000 orders/s, packed by 8"' in name for name in names)


def test_a_percentile_of_too_few_orders_is_left_out(tmp_path: Path) -> None:
    record = record_of_trial(tmp_path, plan(repeats=1))
    record["arms"][0]["orders_measured"] = 9_999
    record["arms"][1]["orders_measured"] = 10_000
    of_p999 = [sample for sample in samples_of_comparison(record) if sample.labels.get("quantile") == "0.999"]
    assert {sample.labels["contender"] for sample in of_p999} == {"b"}
