"""A trial's verdicts: whether two arms of a block differ in a metric beyond chance, and the sentence about it.

This module also computes the smallest difference that a plan is likely to find. It is announced before the first run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import count
from math import exp, log, sqrt
from pathlib import Path
from statistics import NormalDist, median, stdev
from typing import NamedTuple

from exchange.json_records import Record, decode
from exchange.record_kinds import ComparisonRecord
from exchange.unique import unique
from exchange.words import counted
from exchange_simulation.experiments.trials.observations import Observations
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.launching.metrics import Metric
from exchange_simulation.repeats.judging import ALPHA, ComparedPair, ComparedSide, PairVerdict, judge_together
from exchange_simulation.repeats.sentences import cannot_reach_a_verdict
from exchange_simulation.repeats.sign_flips import repeats_needed

ASSUMED_DEVIATION = 0.145
"""The standard deviation of the log ratio of two p50 from repeat to repeat, as on a busy machine with two cores."""
POWER = 0.8
"""The chance that a trial finds the announced difference."""
ANNOUNCED = "due_p50_us"
"""The metric of the announced difference."""
LATEST_TRIALS = 5
"""The most earlier trials that are read."""
LEAST_REPEATS_OF_DEVIATION = 5
"""The number of repeats that a standard deviation needs."""


class PlannedRow(NamedTuple):
    """A comparison of two arms, by their labels, in one metric."""

    metric: Metric
    first: str
    second: str


def planned_rows(plan: TrialPlan) -> list[PlannedRow]:
    """Return all rows of the plan. They are one family: the more rows there are, the wider is every interval."""
    rows = []
    for metric in plan.study.metrics:
        for first, second in plan.compared_arms:
            if metric.judged(first.settings) and metric.judged(second.settings):
                rows.append(PlannedRow(metric, first.label, second.label))
    return rows


def alpha_of(plan: TrialPlan) -> float:
    """Return the level of one look at the results. All looks with enough repeats for a verdict share ALPHA equally.

    A smaller level needs more repeats, so the number of such looks depends on the level. So shares are added until
    there is one for each look that has enough repeats at that level.
    """
    for shares in count(1):
        alpha = ALPHA / shares
        looks = [repeats for repeats in plan.looks if repeats >= repeats_needed(alpha)]
        if len(looks) <= shares:
            break
    return alpha


def unreachable(plan: TrialPlan) -> str | None:
    """Return a sentence if the plan has too few repeats for any verdict, else None."""
    if not planned_rows(plan):
        return None
    return cannot_reach_a_verdict(plan.longest.repeats, alpha_of(plan))


def judge_all(plan: TrialPlan, observed: dict[str, Observations]) -> list[PairVerdict]:
    """Return a verdict for every planned row, in the order of the rows."""
    pairs = [_pair(row.metric, observed[row.first], observed[row.second], plan) for row in planned_rows(plan)]
    return judge_together(pairs, alpha_of(plan), plan.seed, plan.study.sentence_if_different)


def _side(metric: Metric, arm: Observations, plan: TrialPlan) -> ComparedSide:
    """Return one side of a row. If the plan keeps noisy runs, they count like all others."""
    noisy_repeats = arm.noisy_repeats(plan.redo) if plan.redo else ()
    return ComparedSide(arm.arm.contender, arm.values(metric), arm.kept_rate, noisy_repeats)


def _pair(metric: Metric, first: Observations, second: Observations, plan: TrialPlan) -> ComparedPair:
    return ComparedPair(
        figure=metric.name,
        wording=metric.says,
        first=_side(metric, first, plan),
        second=_side(metric, second, plan),
        why_not=not_compared(first, second),
    )


def not_compared(first: Observations, second: Observations) -> str:
    """Return the reason why two arms are not compared.

    For example: tcp did not hold 16,000 orders/s (8 of 10 runs saturated)
    """
    both = (first, second)
    too_slow = [arm for arm in both if not arm.kept_rate]
    reasons = []
    if too_slow:
        reasons.append(_rate_not_kept(too_slow))
    for arm in both:
        if not arm.runs:
            reasons.append(f"{arm.arm.contender} has no valid run")
    if not reasons:
        return "not measured on both sides"
    return "; ".join(reasons)


def _rate_not_kept(too_slow: list[Observations]) -> str:
    """Return the sentence about one or two arms that did not keep their rate."""
    rate = too_slow[0].arm.settings.orders_per_s
    offered = f"{rate:,.10g} orders/s" if rate is not None else "its rate"
    subject = f"{too_slow[0].arm.contender} did not hold" if len(too_slow) == 1 else "neither held"
    saturated = " and ".join(f"{arm.saturated} of {len(arm.runs)}" for arm in too_slow)
    return f"{subject} {offered} ({saturated} runs saturated)"


def detectable(plan: TrialPlan, results: Path | None) -> str | None:
    """Return a sentence about the difference in completion p50 that the plan is likely to find.

    None if the plan does not compare completion p50. `results` is the folder of earlier trials, which show how much p50
    varies from repeat to repeat.
    """
    rows = planned_rows(plan)
    if not any(row.metric.name == ANNOUNCED for row in rows):
        return None
    earlier_deviations = list(deviations(results)) if results else []
    if earlier_deviations:
        deviation = median(earlier_deviations)
        source = f"as in {counted(len(earlier_deviations), 'rows')} of the trials so far"
    else:
        deviation = ASSUMED_DEVIATION
        source = "an assumption, as there is no earlier trial"
    alpha = alpha_of(plan)
    differences = []
    for repeats in unique((plan.repeats, plan.longest.repeats)):
        if repeats >= repeats_needed(alpha):
            difference = smallest_ratio(repeats, len(rows), deviation, alpha) - 1
            differences.append(f"{difference:.0%} with {repeats:,} repeats")
    return (
        f"in {POWER:.0%} of trials a difference in completion p50 is found if it is at least "
        f"{', '.join(differences)} "
        f"(if it varies by {exp(deviation) - 1:.0%} from repeat to repeat, {source})"
    )


def smallest_ratio(repeats: int, rows: int, deviation: float, alpha: float) -> float:
    """Return the ratio that a trial finds with the chance POWER."""
    limit = NormalDist().inv_cdf(1 - alpha / (2 * rows))
    power = NormalDist().inv_cdf(POWER)
    correction = 1 + 1.6 / repeats + (4 + 20 / rows) / repeats**2  # fitted to simulated trials of normal noise
    return exp((limit + power) * deviation / sqrt(repeats) * correction)


def deviations(results: Path) -> Iterator[float]:
    """Yield the standard deviation of the log ratios of p50 of each compared row in the latest trials of a folder.

    Records that are damaged, or of another version, are left out.
    """
    paths: list[Path] = []
    with contextlib.suppress(OSError):
        paths = sorted(results.glob("*/comparison.json"), key=lambda path: path.stat().st_mtime)
    for path in paths[-LATEST_TRIALS:]:
        with contextlib.suppress(OSError, KeyError, TypeError, ValueError, ZeroDivisionError):
            yield from _deviations_in(decode(path.read_bytes(), ComparisonRecord))


def _deviations_in(record: Record) -> Iterator[float]:
    """Yield the standard deviation of the log ratios of p50 of each compared row of a trial."""
    p50_by_repeat = {arm["label"]: arm["metrics"].get(ANNOUNCED, {}).get("by_repeat", {}) for arm in record["arms"]}
    for verdict in record["verdicts"]:
        if verdict["metric"] == ANNOUNCED and verdict["outcome"] != "not compared":
            first = p50_by_repeat[verdict["first"]]
            second = p50_by_repeat[verdict["second"]]
            log_ratios = [log(first[repeat] / second[repeat]) for repeat in first.keys() & second.keys()]
            if len(log_ratios) >= LEAST_REPEATS_OF_DEVIATION:
                yield stdev(log_ratios)
