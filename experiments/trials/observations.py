"""What was measured of an arm: its valid runs, repeat by repeat, and those that do not count."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.trials.arms import Arm
from experiments.trials.attempts import Record, attempts, is_valid
from experiments.trials.plan import Plan, Step
from runs.metrics import Metric

LEAST_SHARE_HELD = 0.5
"""An arm whose saturated runs are more than this share did not hold its rate."""


@dataclass(frozen=True)
class Observations:
    """`runs` and `excluded` by repeat; a repeat without a valid run is missing from `runs`."""

    arm: Arm
    runs: dict[int, Record]
    excluded: list[tuple[int, Record]]
    _read: dict[Metric, dict[int, float]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def saturated(self) -> int:
        """Valid runs that did not keep up with what they were offered."""
        return sum(record["status"] == "saturated" for record in self.runs.values())

    @property
    def is_held(self) -> bool:
        return self.saturated <= LEAST_SHARE_HELD * len(self.runs)

    def values(self, metric: Metric) -> dict[int, float]:
        """By repeat, where it was measured; read once, for every pair asks anew."""
        if metric not in self._read:
            read = {repeat: metric.read(record) for repeat, record in self.runs.items()}
            self._read[metric] = {repeat: value for repeat, value in read.items() if value is not None}
        return self._read[metric]


def observe(trial: Path, plan: Plan) -> dict[str, Observations]:
    """By the arm's label."""
    made = attempts(trial)
    return {arm.label: _of(made, plan, arm) for arm in plan.arms}


def _of(made: dict[str, list[Record]], plan: Plan, arm: Arm) -> Observations:
    runs: dict[int, Record] = {}
    excluded: list[tuple[int, Record]] = []
    for repeat in range(1, plan.repeats + 1):
        for record in made.get(Step(repeat, arm).name, ()):
            if is_valid(record) and repeat not in runs:
                runs[repeat] = record
            else:
                excluded.append((repeat, record))
    return Observations(arm, runs, excluded)


def run_as_dict(repeat: int, record: Record) -> dict[str, Any]:
    """A run, as results point to it: its name is its folder's."""
    return {"repeat": repeat, "run": record["name"], "status": record["status"], "reasons": record["reasons"]}
