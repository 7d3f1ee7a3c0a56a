"""A trial's runs on disk, and what was measured of each arm.

Each attempt at a step has a folder of its own, `STEP-xxxxxx`. The first valid attempt counts, or the one that the
plan's rule on noisy runs chooses; the others stay.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from exchange.json_records import NEWER, SCHEMA, Record, UnusableRecord, decode
from exchange.record_kinds import ComparisonRecord, RunRecord
from exchange_simulation.experiments.trials.arms import TrialArm
from exchange_simulation.experiments.trials.plan import FILE as PLAN
from exchange_simulation.experiments.trials.plan import WARM_UP, TrialPlan, TrialStep, read_plan
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import new_run_folder
from exchange_simulation.launching.metrics import Metric
from exchange_simulation.launching.record.status import is_gateways_own
from exchange_simulation.repeats.judging import MOST_SATURATED

VALID = ("complete", "saturated")
"""The statuses of runs with usable figures."""
ATTEMPT = re.compile("(?P<step>.+)-[0-9a-f]{6}")
NEWER_RECORD = f"its run.json is of a newer schema than {SCHEMA}, which this exchange reads"
UNRECORDED = "ended before it wrote its record"


def new_attempt(trial: Path, step: TrialStep) -> Path:
    """A new folder; a run's name is its token on every link and queue, so no two attempts share one."""
    return new_run_folder(trial, f"{step.name}-{secrets.token_hex(3)}")


def attempts(trial: Path) -> dict[str, list[Record]]:
    """The records of all attempts by step name, oldest first; a killed attempt has a partial record.

    Reads the folder once, since it may hold thousands of runs.
    """
    found: dict[str, list[Record]] = {}
    for folder in trial.iterdir():
        named = ATTEMPT.fullmatch(folder.name)
        if named and folder.is_dir():
            found.setdefault(named["step"], []).append(_record_of(folder))
    return {step: sorted(records, key=lambda record: str(record.get("started_at"))) for step, records in found.items()}


def resumed(trial: Path, plan: TrialPlan) -> int:
    """How often the trial was resumed.

    The plan of an older version does not say. Its warm-ups tell: they are made again at each look and each resumption.
    """
    if plan.resumed is not None:
        return plan.resumed
    named = (ATTEMPT.fullmatch(folder.name) for folder in trial.glob(f"{WARM_UP:02}-*"))
    warm_ups = Counter(name["step"] for name in named if name)
    looks = 1 + sum(repeats < plan.repeats for repeats in plan.looks)
    return max(0, max(warm_ups.values(), default=0) - looks)


def is_warm_up(run: Path) -> bool:
    """True for the folder of a trial's warm-up run, which is in none of the trial's figures."""
    return run.name.startswith(f"{WARM_UP:02}-") and (run.parent / PLAN).exists()


def is_valid(record: Record) -> bool:
    """True if the run's figures can be used: it ended in order, and no recovery interrupted the service."""
    return record["status"] in VALID and not record.get("recovered")


def is_delayed(record: Record) -> bool:
    """True for a saturated run in which only the gateway itself was late, which says nothing of a transport."""
    return record["status"] == "saturated" and bool(record["reasons"]) and is_gateways_own(record["reasons"])


def _record_of(folder: Path) -> Record:
    """run.json's content, or a partial run's record if it cannot be used."""
    try:
        return decode((folder / "run.json").read_bytes(), RunRecord)
    except OSError:
        return unmeasured(folder, UNRECORDED)
    except UnusableRecord as error:
        return unmeasured(folder, NEWER_RECORD if error.status == NEWER else UNRECORDED)


def unmeasured(folder: Path, reason: str) -> Record:
    """The record of a run that measured nothing."""
    return {"schema": 1, "name": folder.name, "status": "partial", "reasons": [reason]}


@dataclass(frozen=True)
class Observations:
    """An arm's runs: `runs` has the valid run of each repeat that has one; the others are listed by repeat.

    `set_aside` are the noisy ones that were made again, `excluded` are those that failed.
    """

    arm: TrialArm
    runs: dict[int, Record]
    excluded: list[tuple[int, Record]]
    set_aside: list[tuple[int, Record]] = field(default_factory=list)
    _read: dict[Metric, dict[int, float]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def saturated(self) -> int:
        """The number of valid runs that did not keep up with the offered load."""
        return sum(record["status"] == "saturated" for record in self.runs.values())

    @property
    def delayed(self) -> int:
        """The number of runs in which only the gateway itself was late."""
        return sum(map(is_delayed, self.runs.values()))

    @property
    def kept_rate(self) -> bool:
        return self.saturated - self.delayed <= MOST_SATURATED * len(self.runs)

    def values(self, metric: Metric) -> dict[int, float]:
        """The metric's values by repeat, without repeats that did not measure it; cached for further comparisons."""
        if metric not in self._read:
            read = {repeat: metric.read(record) for repeat, record in self.runs.items()}
            self._read[metric] = {repeat: value for repeat, value in read.items() if value is not None}
        return self._read[metric]


def set_aside(folder: Path) -> set[str]:
    """Names of the valid runs that the trial left out; by its last results if this version cannot use its plan."""
    with contextlib.suppress(UserError):
        arms = observe(folder, read_plan(folder)).values()
        return {run["name"] for arm in arms for _, run in (*arm.set_aside, *arm.excluded) if is_valid(run)}
    with contextlib.suppress(OSError, UnusableRecord):
        record = decode((folder / "comparison.json").read_bytes(), ComparisonRecord)
        left_out = (run for arm in record["arms"] for run in (*arm.get("set_aside", ()), *arm["excluded"]))
        return {run["run"] for run in left_out if run["status"] in VALID}
    return set()


def observe(trial: Path, plan: TrialPlan) -> dict[str, Observations]:
    """The observations of every arm, by its label."""
    records = attempts(trial)
    return {arm.label: _observations(records, plan, arm) for arm in plan.arms}


def _observations(records: dict[str, list[Record]], plan: TrialPlan, arm: TrialArm) -> Observations:
    observations = Observations(arm, {}, [])
    for repeat in range(1, plan.repeats + 1):
        tries = records.get(TrialStep(repeat, arm).name, [])
        valid = list(filter(is_valid, tries))
        counts = plan.redo.choose(valid) if plan.redo else next(iter(valid), None)
        if counts:
            observations.runs[repeat] = counts
        for record in tries:
            is_noisy = plan.redo is not None and is_valid(record) and plan.redo.is_noisy(record)
            if record is not counts:
                (observations.set_aside if is_noisy else observations.excluded).append((repeat, record))
    return observations
