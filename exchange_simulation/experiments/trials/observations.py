"""A trial's runs on disk, and the observations of each arm.

Each attempt at a step has its own folder, `STEP-xxxxxx`. The first valid attempt counts, or the attempt that the plan's
rule on noisy runs chooses. The folders of the others are kept.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from exchange.json_records import NEWER, SCHEMA, Record, UnusableRecord
from exchange.record_kinds import ComparisonRecord, RunRecord, decode_record
from exchange_simulation.experiments.trials.arms import TrialArm
from exchange_simulation.experiments.trials.plan import FILE as PLAN
from exchange_simulation.experiments.trials.plan import WARM_UP, TrialPlan, TrialStep, read_plan
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import new_run_folder, read_own_file
from exchange_simulation.launching.metrics import Metric
from exchange_simulation.launching.record.status import is_gateway_lag_only
from exchange_simulation.repeats.judging import MOST_SATURATED
from exchange_simulation.repeats.noise_rule import RedoRule

VALID = ("complete", "saturated")
"""The statuses of runs with usable figures."""
ATTEMPT = re.compile("(?P<step>.+)-[0-9a-f]{6}")
NEWER_RECORD = f"its run.json is of a newer schema than {SCHEMA}, which this exchange reads"
UNRECORDED = "ended before it wrote its record"


def new_attempt(trial: Path, step: TrialStep) -> Path:
    """Return a new folder. Its name is unique, since links and queues of the run are named by it."""
    return new_run_folder(trial, f"{step.name}-{secrets.token_hex(3)}")


def attempts(trial: Path) -> dict[str, list[Record]]:
    """Return the records of all attempts by step name, oldest first. A killed attempt has a partial record.

    The folder is read only once, since it may hold thousands of runs.
    """
    records_by_step: dict[str, list[Record]] = {}
    for folder in trial.iterdir():
        name = ATTEMPT.fullmatch(folder.name)
        if name and folder.is_dir():
            records_by_step.setdefault(name["step"], []).append(_record_of(folder))
    for records in records_by_step.values():
        records.sort(key=lambda record: str(record.get("started_at")))
    return records_by_step


def resumed(trial: Path, plan: TrialPlan) -> int:
    """Return how often the trial was resumed.

    The plan of an older version lacks this number. It follows from the number of warm-ups of an arm, which are run at
    each look and at each resumption.
    """
    if plan.resumed is not None:
        return plan.resumed
    warm_ups_of_step: Counter[str] = Counter()
    for folder in trial.glob(f"{WARM_UP:02}-*"):
        name = ATTEMPT.fullmatch(folder.name)
        if name:
            warm_ups_of_step[name["step"]] += 1
    most_warm_ups = max(warm_ups_of_step.values(), default=0)
    looks = 1 + len([repeats for repeats in plan.looks if repeats < plan.repeats])
    return max(0, most_warm_ups - looks)


def is_warm_up(run: Path) -> bool:
    """Return True for the folder of a trial's warm-up run. Warm-ups do not count in any figure."""
    return run.name.startswith(f"{WARM_UP:02}-") and (run.parent / PLAN).exists()


def is_valid(record: Record) -> bool:
    """Return True if the run's figures can be used: the run ended in order, and no recovery interrupted its service."""
    return record["status"] in VALID and not record.get("recovered")


def is_delayed(record: Record) -> bool:
    """Return True for a saturated run in which only the gateway was late. The transport is not to blame for that."""
    return record["status"] == "saturated" and bool(record["reasons"]) and is_gateway_lag_only(record["reasons"])


def _record_of(folder: Path) -> Record:
    """Return run.json's content, or the record of a partial run if run.json cannot be used."""
    try:
        return decode_record(read_own_file(folder / "run.json"), RunRecord)
    except OSError:
        return unmeasured(folder, UNRECORDED)
    except UnusableRecord as error:
        return unmeasured(folder, NEWER_RECORD if error.status == NEWER else UNRECORDED)


def unmeasured(folder: Path, reason: str) -> Record:
    """Return the record of a run that measured nothing."""
    return {"schema": 1, "name": folder.name, "status": "partial", "reasons": [reason]}


class RunOfRepeat(NamedTuple):
    """A run's record, with the number of its repeat."""

    repeat: int
    record: Record


@dataclass(frozen=True)
class Observations:
    """An arm's runs."""

    arm: TrialArm
    runs: dict[int, Record]
    """By repeat, the record of the run that counts; repeats without a valid run are missing."""
    excluded: list[RunOfRepeat]
    """Runs that failed, and further valid runs of a repeat."""
    set_aside: list[RunOfRepeat] = field(default_factory=list)
    """Noisy runs that were repeated."""
    _values_by_metric: dict[Metric, dict[int, float]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def saturated(self) -> int:
        """The number of valid runs that did not keep up with the offered load."""
        return len([record for record in self.runs.values() if record["status"] == "saturated"])

    @property
    def delayed(self) -> int:
        """The number of runs in which only the gateway itself was late."""
        return len([record for record in self.runs.values() if is_delayed(record)])

    @property
    def kept_rate(self) -> bool:
        """True if few enough runs saturated. Runs in which only the gateway was late do not count as saturated."""
        return self.saturated - self.delayed <= MOST_SATURATED * len(self.runs)

    def noisy_repeats(self, rule: RedoRule) -> list[int]:
        """Return the repeats whose run was noisy, by the plan's rule."""
        return [repeat for repeat, record in self.runs.items() if rule.is_noisy(record)]

    def values(self, metric: Metric) -> dict[int, float]:
        """Return the metric's values by repeat, without repeats that did not measure the metric. They are cached."""
        if metric not in self._values_by_metric:
            values = {}
            for repeat, record in self.runs.items():
                value = metric.read(record)
                if value is not None:
                    values[repeat] = value
            self._values_by_metric[metric] = values
        return self._values_by_metric[metric]


def set_aside(folder: Path) -> set[str]:
    """Return the names of the valid runs that do not count in the trial.

    If this version cannot use the trial's plan, the names come from the trial's comparison.json.
    """
    with contextlib.suppress(UserError):
        names = set()
        for arm in observe(folder, read_plan(folder)).values():
            for run in (*arm.set_aside, *arm.excluded):
                if is_valid(run.record):
                    names.add(run.record["name"])
        return names
    with contextlib.suppress(OSError, UnusableRecord):
        record = decode_record(read_own_file(folder / "comparison.json"), ComparisonRecord)
        names = set()
        for arm in record["arms"]:
            for run in (*arm.get("set_aside", ()), *arm["excluded"]):
                if run["status"] in VALID:
                    names.add(run["run"])
        return names
    return set()


def observe(trial: Path, plan: TrialPlan) -> dict[str, Observations]:
    """Return the observations of every arm, by the arm's label."""
    records = attempts(trial)
    return {arm.label: _observations(records, plan, arm) for arm in plan.arms}


def _observations(records: dict[str, list[Record]], plan: TrialPlan, arm: TrialArm) -> Observations:
    """Return the observations of one arm. `records` are those of all attempts, by step name."""
    observations = Observations(arm, runs={}, excluded=[])
    for repeat in range(1, plan.repeats + 1):
        tries = records.get(TrialStep(repeat, arm).name, [])
        counted_run = _counted_run(tries, plan)
        if counted_run:
            observations.runs[repeat] = counted_run
        for record in tries:
            if record is counted_run:
                continue
            if plan.redo is not None and is_valid(record) and plan.redo.is_noisy(record):
                observations.set_aside.append(RunOfRepeat(repeat, record))
            else:
                observations.excluded.append(RunOfRepeat(repeat, record))
    return observations


def _counted_run(tries: list[Record], plan: TrialPlan) -> Record | None:
    """Return the try that counts: the rule on noisy runs chooses it, or it is the first valid one. None if none is."""
    valid = [record for record in tries if is_valid(record)]
    if plan.redo:
        return plan.redo.choose(valid)
    return valid[0] if valid else None
