"""comparison.json: a trial's results as one record, which names the runs of every figure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from exchange.estimates import IntervalEstimate, median
from exchange.json_records import SCHEMA, Record
from exchange_simulation.experiments.trials.conditions import caveats, conditions
from exchange_simulation.experiments.trials.observations import Observations, RunOfRepeat, observe, resumed
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.experiments.trials.verdicts import alpha_of, judge_all, planned_rows, unreachable
from exchange_simulation.launching.metrics import Metric, orders_measured
from exchange_simulation.launching.record.noise import noise_share
from exchange_simulation.launching.record.noise_summary import NOISE_SUMMARY, NoiseSummary
from exchange_simulation.launching.transport_urls import guarantee_of
from exchange_simulation.repeats.judging import PairVerdict, is_decided, statistics_of, verdict_as_dict
from exchange_simulation.reports.formats.estimates import middle_half_ends
from transports.guarantees import unlike_guarantees

FILE = "comparison.json"


def results(trial: Path, plan: TrialPlan) -> dict[str, Any]:
    """Return the record of all runs in the trial's folder so far."""
    observed = observe(trial, plan)
    run_conditions = conditions(plan, observed.values())
    complete = all(len(arm.runs) == plan.repeats for arm in observed.values())
    verdicts = judge_all(plan, observed)
    times_resumed = resumed(trial, plan)
    all_caveats = list(caveats(plan, observed, run_conditions, times_resumed))
    too_few_repeats = unreachable(plan)
    if too_few_repeats:
        all_caveats.insert(0, too_few_repeats)
    unlike = unlike_guarantees(
        {arm.contender: guarantee_of(arm.settings.transport, arm.settings.as_dict()) for arm in plan.arms}
    )
    if unlike:
        all_caveats.insert(0, unlike)
    return {
        "schema": SCHEMA,
        "name": trial.name,
        "study": plan.study.name,
        "status": "complete" if complete else "partial",
        "caveats": all_caveats,
        "seed": plan.seed,
        "seed_by_repeat": plan.seed_by_repeat,
        "repeats": plan.repeats,
        "resumed": times_resumed,
        "redo_noisy": _redo_noisy(plan, observed.values()),
        NOISE_SUMMARY: _noise_of(observed.values()).as_dict(),
        "contenders": plan.contenders,
        "blocks": plan.blocks,
        "statistics": _statistics(plan),
        "metrics": {metric.name: {"title": metric.title, "unit": metric.unit} for metric in plan.study.metrics},
        "verdicts": _verdicts(plan, observed, verdicts),
        "undecided": len([verdict for verdict in verdicts if not is_decided(verdict)]),
        "arms": [_arm(arm, plan) for arm in observed.values()],
        "conditions": run_conditions,
        "order": [step.name for step in plan.steps],
    }


def _redo_noisy(plan: TrialPlan, arms: Iterable[Observations]) -> dict[str, Any] | None:
    """Return the plan's rule on noisy runs, and how often it was used; None if the plan keeps noisy runs."""
    if plan.redo is None:
        return None
    set_aside = 0
    runs: list[Record] = []
    for arm in arms:
        set_aside += len(arm.set_aside)
        runs += arm.runs.values()
    return plan.redo.use_as_dict(set_aside, runs)


def _noise_of(arms: Iterable[Observations]) -> NoiseSummary:
    """Return the noise of all runs that count."""
    return NoiseSummary.of_shares(noise_share(record) for arm in arms for record in arm.runs.values())


def _statistics(plan: TrialPlan) -> dict[str, Any]:
    """Return the method of the verdicts, with the looks of the trial and their level."""
    alpha = alpha_of(plan)
    statistics = statistics_of(len(planned_rows(plan)), alpha)
    return {**statistics, "looks": list(plan.looks), "alpha_of_a_look": alpha}


def _arm(arm: Observations, plan: TrialPlan) -> dict[str, Any]:
    """Return an arm's entry in the record."""
    guarantee = guarantee_of(arm.arm.settings.transport, arm.arm.settings.as_dict())
    metrics = {}
    for metric in plan.study.metrics:
        figures = _metric(arm, metric, plan.seed)
        if figures:
            metrics[metric.name] = figures
    written: dict[str, Any] = {
        "label": arm.arm.label,
        "contender": arm.arm.contender,
        "block": arm.arm.block,
        "settings": arm.arm.settings.as_dict(),
        "guarantee": guarantee.level if guarantee else None,
        "held": arm.kept_rate if arm.runs else None,
        "saturated": arm.saturated,
        "delayed_by_gateway": arm.delayed,
        "orders_measured": _orders_measured(arm),
        "runs": [_run_with_noise(RunOfRepeat(repeat, record)) for repeat, record in arm.runs.items()],
        "excluded": [_run(run) for run in arm.excluded],
        "set_aside": [_run_with_noise(run) for run in arm.set_aside],
        "metrics": metrics,
    }
    if arm.arm.checkout is not None:
        written["checkout"] = str(arm.arm.checkout)
    return written


def _orders_measured(arm: Observations) -> int | None:
    """Return the fewest orders that a run of the arm measured; None without runs, or if a record lacks the number."""
    counts = []
    for record in arm.runs.values():
        count = orders_measured(record)
        if count is None:
            return None
        counts.append(count)
    return int(min(counts)) if counts else None


def _run(run: RunOfRepeat) -> dict[str, Any]:
    """Return a reference to a run; `run` is the name of its folder."""
    record = run.record
    return {"repeat": run.repeat, "run": record["name"], "status": record["status"], "reasons": record["reasons"]}


def _run_with_noise(run: RunOfRepeat) -> dict[str, Any]:
    """Return a reference to a run, with the share of all processors that others took during it."""
    return {**_run(run), "share_of_all_cpus": noise_share(run.record)}


def _metric(arm: Observations, metric: Metric, seed: int) -> dict[str, Any]:
    """Return the median with its interval, and the values by repeat; empty if no run measured the metric."""
    values = arm.values(metric)
    if not values:
        return {}
    figures: Record = _estimate(median(list(values.values()), seed), "median")
    figures["by_repeat"] = {str(repeat): value for repeat, value in values.items()}
    return {**figures, "middle_half": middle_half_ends(figures) if len(values) > 1 else None}


def _estimate(estimate: IntervalEstimate, name: str) -> dict[str, float | None]:
    return {name: estimate.value, "low": estimate.low, "high": estimate.high}


def _verdicts(plan: TrialPlan, observed: dict[str, Observations], verdicts: list[PairVerdict]) -> list[dict[str, Any]]:
    """Return the verdict of each planned row, with the row's metric, block and arms."""
    entries = []
    for row, verdict in zip(planned_rows(plan), verdicts, strict=True):
        entries.append(
            {
                "metric": row.metric.name,
                "block": observed[row.first].arm.block,
                "first": row.first,
                "second": row.second,
                **verdict_as_dict(verdict),
            }
        )
    return entries
