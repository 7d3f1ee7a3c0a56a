"""comparison.json: a trial's results as one record, in which every number leads to the runs it came from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exchange.estimates import CONFIDENCE, IntervalEstimate, median
from exchange.json_records import SCHEMA, Record
from exchange_simulation.experiments.trials.conditions import caveats, conditions
from exchange_simulation.experiments.trials.observations import Observations, observe, resumed
from exchange_simulation.experiments.trials.plan import Plan
from exchange_simulation.experiments.trials.verdicts import (
    ALPHA,
    Verdict,
    alpha_of,
    is_decided,
    judge_all,
    planned_rows,
    unreachable,
)
from exchange_simulation.launching.metrics import Metric, orders_measured
from exchange_simulation.launching.record.noise import noise_share
from exchange_simulation.repeats.sign_flips import repeats_needed
from exchange_simulation.reports.formats import ends

FILE = "comparison.json"
TEST = "sign flips of the log ratios paired by repeat, two-sided"


def results(trial: Path, plan: Plan) -> dict[str, Any]:
    """The results of all runs in the trial's folder so far."""
    observed = observe(trial, plan)
    found = conditions(plan, observed.values())
    complete = all(len(arm.runs) == plan.repeats for arm in observed.values())
    verdicts, times = judge_all(plan, observed), resumed(trial, plan)
    return {
        "schema": SCHEMA,
        "name": trial.name,
        "study": plan.study.name,
        "status": "complete" if complete else "partial",
        "caveats": list(filter(None, [unreachable(plan), *caveats(plan, observed, found, times)])),
        "seed": plan.seed,
        "seed_by_repeat": plan.seed_by_repeat,
        "repeats": plan.repeats,
        "resumed": times,
        "redo_noisy": _redo_noisy(plan, observed.values()),
        "contenders": plan.contenders,
        "blocks": plan.blocks,
        "statistics": _statistics(plan),
        "metrics": {metric.name: {"title": metric.title, "unit": metric.unit} for metric in plan.study.metrics},
        "verdicts": [_verdict(verdict) for verdict in verdicts],
        "undecided": sum(not is_decided(verdict) for verdict in verdicts),
        "arms": [_arm(arm, plan) for arm in observed.values()],
        "conditions": found,
        "order": [step.name for step in plan.steps],
    }


def _redo_noisy(plan: Plan, arms: Iterable[Observations]) -> dict[str, Any] | None:
    """The plan's rule, and how often it was used; None if the plan keeps noisy runs."""
    if plan.redo is None:
        return None
    observed = list(arms)
    still_noisy = sum(plan.redo.is_noisy(run) for arm in observed for run in arm.runs.values())
    return {**asdict(plan.redo), "set_aside": sum(len(arm.set_aside) for arm in observed), "still_noisy": still_noisy}


def _statistics(plan: Plan) -> dict[str, Any]:
    rows = len(planned_rows(plan))
    return {
        "estimate": "median over repeats; of a ratio, the Hodges-Lehmann estimate of the log ratios paired by repeat",
        "interval": "of a median: bootstrap over repeats; of a ratio: the ratios that the test does not reject",
        "confidence": CONFIDENCE,
        "test": TEST,
        "correction": "max-T over all rows, step-down",
        "alpha": ALPHA,
        "looks": list(plan.looks),
        "alpha_of_a_look": alpha_of(plan),
        "rows": rows,
        "repeats_needed": repeats_needed(alpha_of(plan)) if rows else None,
    }


def _arm(arm: Observations, plan: Plan) -> dict[str, Any]:
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
    return {**found, "middle_half": ends(found) if len(values) > 1 else None}


def _estimate(estimate: IntervalEstimate, name: str) -> dict[str, float | None]:
    return {name: estimate.value, "low": estimate.low, "high": estimate.high}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    row = verdict.row
    return {
        "metric": row.metric.name,
        "block": row.first.arm.block,
        "first": row.first.arm.label,
        "second": row.second.arm.label,
        "outcome": verdict.outcome,
        "sentence": verdict.sentence,
        **(_estimate(verdict.ratio, "ratio") if verdict.ratio else {}),
        "p": verdict.p,
        "p_corrected": verdict.p_corrected,
        "share_of_repeats_first_lower": verdict.share_lower,
        "repeats": row.repeats,
    }
