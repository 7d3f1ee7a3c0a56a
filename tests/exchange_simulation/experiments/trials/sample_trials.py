"""Plans, and folders of trials with records of chosen figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from exchange.settings import RunSettings
from exchange_simulation.experiments.trials.arms import Factor, TrialArm, arms_of
from exchange_simulation.experiments.trials.observations import new_attempt
from exchange_simulation.experiments.trials.plan import TrialPlan, TrialStep
from exchange_simulation.launching.files import json_bytes

HOST = {"cpu": "AMD EPYC", "cores": 2, "load_before": [0.5, 0.4, 0.3]}
VERSIONS = {"python": "3.11.7", "exchange": "0.1.0"}


def arms(contenders: int = 2, rates: tuple[float, ...] = (1000.0,)) -> tuple[TrialArm, ...]:
    """Contenders a, b, ... differ in their packing."""
    packings = {chr(ord("a") + place): place + 1 for place in range(contenders)}
    return arms_of(
        RunSettings,
        [Factor("packing", packings)],
        [Factor("orders_per_s", {f"at {rate:,.0f} orders/s": rate for rate in rates})],
    )


def plan(repeats: int = 10, seed: int = 1, **of_arms: Any) -> TrialPlan:
    return TrialPlan(arms=arms(**of_arms), repeats=repeats, seed=seed)


def record_of(folder: Path, planned: RunSettings, us: float = 100.0, **changed: Any) -> dict[str, Any]:
    """A complete run in which every completion took so long; CPU likewise."""
    times = dict.fromkeys(("p50", "p90", "p99", "p999"), us)
    changed_settings = changed.pop("settings", {})
    record = {
        "schema": 1,
        "name": folder.name,
        "status": "complete",
        "reasons": [],
        "settings": {**orjson.loads(json_bytes(planned.as_dict())), **changed_settings},
        "counts": {"orders_answered": 1000},
        "checksums": {"orders": "aa", "answers": "bb"},
        "rates": {"orders_per_s": planned.orders_per_s, "answers_per_s": 2400.0},
        "completion_us": {"due": times, "handed_over": times},
        "components": {"gateway": {"cpu_s": us}, "engine": {"cpu_s": us}},
        "host": HOST,
        "versions": VERSIONS,
        "started_at": "2026-11-21T14:42:20+00:00",
    }
    return {**record, **changed}


def put(trial: Path, step: TrialStep, us: float = 100.0, **changed: Any) -> Path:
    """Put a made-up run where a trial finds it."""
    folder = new_attempt(trial, step)
    settings = replace(step.arm.settings, seed=step.arm.settings.seed + max(step.repeat - 1, 0))
    (folder / "run.json").write_bytes(orjson.dumps(record_of(folder, settings, us, **changed)))
    return folder


def put_all(trial: Path, trial_plan: TrialPlan, us: dict[str, list[float]]) -> None:
    """By contender, a completion time for each repeat."""
    for step in trial_plan.steps:
        put(trial, step, us[step.arm.contender][step.repeat - 1])
