"""A comparison of transports with unlike guarantees says so first, and in the labels of its pictures."""

from __future__ import annotations

from pathlib import Path

from sample_trials import put

from exchange.json_records import Record
from exchange.settings import RunSettings
from exchange_simulation.experiments.trials.arms import TrialArm
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.experiments.trials.results import results
from exchange_simulation.reports.comparison.figures import line_labels


def record_of(trial: Path, *transports: str) -> Record:
    """The record of a trial of three repeats, too few for a verdict, with an arm for each transport."""
    arms = tuple(TrialArm(transport, "at 1,000 orders/s", RunSettings(transport=transport)) for transport in transports)
    trial_plan = TrialPlan(arms=arms, repeats=3, seed=1)
    for step in trial_plan.steps:
        put(trial, step)
    return results(trial, trial_plan)


def test_unlike_guarantees_are_the_first_caveat_and_in_the_labels(tmp_path: Path) -> None:
    record = record_of(tmp_path, "zeromq", "redis?kind=stream")
    assert record["caveats"][0] == (
        "the guarantees differ, so this is not like against like: zeromq is lossy; "
        "redis?kind=stream is durable, synced once a second"
    )
    assert "repeats cannot reach a verdict" in record["caveats"][1]
    assert line_labels(record["arms"]) == {
        "zeromq": "zeromq (lossy)",
        "redis?kind=stream": "redis?kind=stream (durable)",
    }


def test_like_guarantees_are_not_spoken_of(tmp_path: Path) -> None:
    record = record_of(tmp_path, "zeromq", "redis")
    assert not any("guarantees" in caveat for caveat in record["caveats"])
    assert line_labels(record["arms"]) == {"zeromq": "zeromq", "redis": "redis"}


def test_records_of_older_versions_have_plain_labels(tmp_path: Path) -> None:
    record = record_of(tmp_path, "zeromq", "redis?kind=stream")
    for arm in record["arms"]:
        del arm["guarantee"]
    assert line_labels(record["arms"]) == {"zeromq": "zeromq", "redis?kind=stream": "redis?kind=stream"}
