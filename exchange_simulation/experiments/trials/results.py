"""comparison.json: a trial's results as one record, in which every number leads to the runs it came from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from exchange.estimates import IntervalEstimate, median
from exchange.json_records import SCHEMA, Record
from exchange_simulation.experiments.trials.conditions import caveats, conditions
from exchange_simulation.experiments.trials.observations import Observations, observe, resumed
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.experiments.trials.verdicts import alpha_of, judge_all, planned_rows, unreachable
from exchange_simulation.launching.metrics import Metric, orders_measured
from exchange_simulation.launching.record.noise import noise_share
from exchange_simulation.repeats.judging import PairVerdict, is_decided, statistics_of, verdict_as_dict
from exchange_simulation.reports.formats.estimates import middle_half_ends

FILE = "comparison.json"


def results(trial: Path, plan: TrialPlan) -> dict[str, Any]:
    """The results of all runs in the trial's folder so far."""
    observed = observe(trial, plan)
    run_conditions = conditions(plan, observed.values())
    complete = all(len(arm.runs) == plan.repeats for arm in observed.values())
    verdicts = judge_all(plan, observed)
    times = resumed(trial, plan)
    return {
        "schema": SCHEMA,
        "name": trial.name,
        "study": plan.study.name,
        "status": "complete" if complete else "partial",
        "caveats": list(filter(None, [unreachable(plan), *caveats(plan, observed, run_conditions, times)])),
        "seed": plan.seed,
        "seed_by_repeat": plan.seed_by_repeat,
        "repeats": plan.repeats,
        "resumed": times,
        "redo_noisy": _redo_noisy(plan, observed.values()),
        "contenders": plan.contenders,
        "blocks": plan.blocks,
        "statistics": _statistics(plan),
        "metrics": {metric.name: {"title": metric.title, "unit": metric.unit} for metric in plan.study.metrics},
        "verdicts": _verdicts(plan, observed, verdicts),
        "undecided": sum(not is_decided(verdict) for verdict in verdicts),
        "arms": [_arm(arm, plan) for arm in observed.values()],
        "conditions": run_conditions,
        "order": [step.name for step in plan.steps],
    }


def _redo_noisy(plan: TrialPlan, arms: Iterable[Observations]) -> dict[str, Any] | None:
    """The plan's rule, and how often it was used; None if the plan keeps noisy runs."""
    if plan.redo is None:
        return None
    observed = list(arms)
    set_aside = sum(len(arm.set_aside) for arm in observed)
    return plan.redo.use_as_dict(set_aside, [run for arm in observed for run in arm.runs.values()])


def _statistics(plan: TrialPlan) -> dict[str, Any]:
    """How the verdicts were found, with the looks of a trial that goes on."""
    alpha = alpha_of(plan)
    statistics = statistics_of(len(planned_rows(plan)), alpha)
    return {**statistics, "looks": list(plan.looks), "alpha_of_a_look": alpha}


def _arm(arm: Observations, plan: TrialPlan) -> dict[str, Any]:
    return {
        "label": arm.arm.label,
        "contender": arm.arm.contender,
        "block": arm.arm.block,
        "settings": arm.arm.settings.as_dict(),
        "held": arm.kept_rate if arm.runs else None,
        "saturated": arm.saturated,
        "delayed_by_gateway": arm.delayed,
        "orders_measured": _orders_measured(arm),
        "runs": [_run(*run) for run in arm.runs.items()],
        "excluded": [_run(*run) for run in arm.excluded],
        "set_aside": [{**_run(*run), "share_of_all_cpus": noise_share(run[1])} for run in arm.set_aside],
        "metrics": {metric.name: found for metric in plan.study.metrics if (found := _metric(arm, metric, plan.seed))},
    }


def _orders_measured(arm: Observations) -> int | None:
    """The fewest orders that a run of the arm measured; None if a record does not tell."""
    counts = [count for run in arm.runs.values() if (count := orders_measured(run)) is not None]
    return int(min(counts)) if counts and len(counts) == len(arm.runs) else None


def _run(repeat: int, record: Record) -> dict[str, Any]:
    """A reference to a run: its name is its folder's."""
    return {"repeat": repeat, "run": record["name"], "status": record["status"], "reasons": record["reasons"]}


def _metric(arm: Observations, metric: Metric, seed: int) -> dict[str, Any]:
    """The median with its interval, and the values by repeat; empty if no run measured the metric."""
    values = arm.values(metric)
    if not values:
        return {}
    found: Record = _estimate(median(list(values.values()), seed), "median")
    found["by_repeat"] = {str(repeat): value for repeat, value in values.items()}
    return {**found, "middle_half": middle_half_ends(found) if len(values) > 1 else None}


def _estimate(estimate: IntervalEstimate, name: str) -> dict[str, float | None]:
    return {name: estimate.value, "low": estimate.low, "high": estimate.high}


def _verdicts(plan: TrialPlan, observed: dict[str, Observations], verdicts: list[PairVerdict]) -> list[dict[str, Any]]:
    """The verdict of each planned row, with what was compared in it."""
    rows = zip(planned_rows(plan), verdicts, strict=True)
    return [
        {
            "metric": metric.name,
            "block": observed[first].arm.block,
            "first": first,
            "second": second,
            **verdict_as_dict(verdict),
        }
        for (metric, first, second), verdict in rows
    ]
