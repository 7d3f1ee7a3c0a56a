"""A trial's verdicts: whether two arms of a block differ in a metric beyond chance, with the sentence that says so.

The smallest difference that a plan is likely to find is computed here too; it is announced before the first run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import count
from math import exp, log, sqrt
from pathlib import Path
from statistics import NormalDist, median, stdev

from exchange.json_records import Record, decode
from exchange.record_kinds import ComparisonRecord
from exchange.words import counted
from exchange_simulation.experiments.trials.observations import Observations
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.launching.metrics import Metric
from exchange_simulation.repeats.judging import ALPHA, ComparedPair, ComparedSide, PairVerdict, judge_together
from exchange_simulation.repeats.sentences import cannot_reach_a_verdict
from exchange_simulation.repeats.sign_flips import repeats_needed

ASSUMED_DEVIATION = 0.145
"""How far the log ratio of two p50 deviates from repeat to repeat, as measured on a busy machine with two cores."""
POWER = 0.8
"""The chance with which a difference that a plan announces is found."""
ANNOUNCED = "due_p50_us"
LATEST_TRIALS = 5
"""At most this many earlier trials are read."""


PlannedRow = tuple[Metric, str, str]
"""(metric, label of the first arm, label of the second)"""


def planned_rows(plan: TrialPlan) -> list[PlannedRow]:
    """All rows that the plan leads to. They are one family: the more there are, the wider every interval."""
    return [
        (metric, first.label, second.label)
        for metric in plan.study.metrics
        for first, second in plan.compared_arms
        if metric.judged(first.settings) and metric.judged(second.settings)
    ]


def alpha_of(plan: TrialPlan) -> float:
    """The level of one look at the results of a trial that goes on: those that have enough repeats share ALPHA."""
    share = next(n for n in count(1) if sum(look >= repeats_needed(ALPHA / n) for look in plan.looks) <= n)
    return ALPHA / share


def unreachable(plan: TrialPlan) -> str | None:
    """A sentence if no repeat of this plan can ever lead to a verdict, else None."""
    return cannot_reach_a_verdict(plan.longest.repeats, alpha_of(plan)) if planned_rows(plan) else None


def judge_all(plan: TrialPlan, observed: dict[str, Observations]) -> list[PairVerdict]:
    """A verdict for every planned row, in their order; all rows are one family."""
    pairs = [_pair(metric, observed[first], observed[second]) for metric, first, second in planned_rows(plan)]
    return judge_together(pairs, alpha_of(plan), plan.seed, plan.study.differ)


def _pair(metric: Metric, first: Observations, second: Observations) -> ComparedPair:
    return ComparedPair(
        figure=metric.name,
        wording=metric.says,
        first=ComparedSide(first.arm.contender, first.values(metric), first.kept_rate),
        second=ComparedSide(second.arm.contender, second.values(metric), second.kept_rate),
        why_not=not_compared(first, second),
    )


def not_compared(first: Observations, second: Observations) -> str:
    """The reason why two arms are not compared.

    For example: tcp did not hold 16,000 orders/s (8 of 10 runs saturated)
    """
    both = (first, second)
    lacking = [arm for arm in both if not arm.kept_rate]
    reasons = [_rate_not_kept(lacking)] if lacking else []
    reasons += [f"{arm.arm.contender} has no valid run" for arm in both if not arm.runs]
    return "; ".join(reasons) or "not measured on both sides"


def _rate_not_kept(lacking: list[Observations]) -> str:
    rate = lacking[0].arm.settings.orders_per_s
    offered = f"{rate:,.10g} orders/s" if rate is not None else "its rate"
    who = f"{lacking[0].arm.contender} did not hold" if len(lacking) == 1 else "neither held"
    saturated = " and ".join(f"{arm.saturated} of {len(arm.runs)}" for arm in lacking)
    return f"{who} {offered} ({saturated} runs saturated)"


def detectable(plan: TrialPlan, results: Path | None) -> str | None:
    """The difference in completion p50 that the plan is likely to find; None for a plan without such a row."""
    rows = planned_rows(plan)
    if not any(metric.name == ANNOUNCED for metric, _, _ in rows):
        return None
    earlier = list(deviations(results)) if results else []
    deviation = median(earlier) if earlier else ASSUMED_DEVIATION
    as_before = f"as in {counted(len(earlier), 'rows')} of the trials so far"
    source = as_before if earlier else "an assumption, as there is no earlier trial"
    enough = [each for each in (plan.repeats, *plan.looks[-1:]) if each >= repeats_needed(alpha_of(plan))]
    smallest = {each: smallest_ratio(each, len(rows), deviation, alpha_of(plan)) - 1 for each in enough}
    return (
        f"in {POWER:.0%} of trials a difference in completion p50 is found if it is at least "
        f"{', '.join(f'{ratio:.0%} with {repeats:,} repeats' for repeats, ratio in smallest.items())} "
        f"(if it varies by {exp(deviation) - 1:.0%} from repeat to repeat, {source})"
    )


def smallest_ratio(repeats: int, rows: int, deviation: float, alpha: float) -> float:
    """The ratio that is found with the chance POWER. The last factor is fitted to simulated trials of normal noise."""
    limit = NormalDist().inv_cdf(1 - alpha / (2 * rows))
    power = NormalDist().inv_cdf(POWER)
    return exp((limit + power) * deviation / sqrt(repeats) * (1 + 1.6 / repeats + (4 + 20 / rows) / repeats**2))


def deviations(results: Path) -> Iterator[float]:
    """The standard deviation of each compared row's log ratios of p50 in the latest trials of a folder.

    A record that is damaged, or that another version wrote, is left out.
    """
    paths: list[Path] = []
    with contextlib.suppress(OSError):
        paths = sorted(results.glob("*/comparison.json"), key=lambda path: path.stat().st_mtime)
    for path in paths[-LATEST_TRIALS:]:
        with contextlib.suppress(OSError, KeyError, TypeError, ValueError, ZeroDivisionError):
            yield from _deviations_in(decode(path.read_bytes(), ComparisonRecord))


def _deviations_in(record: Record) -> Iterator[float]:
    arms = {arm["label"]: arm["metrics"].get(ANNOUNCED, {}).get("by_repeat", {}) for arm in record["arms"]}
    for verdict in record["verdicts"]:
        if verdict["metric"] == ANNOUNCED and verdict["outcome"] != "not compared":
            first, second = arms[verdict["first"]], arms[verdict["second"]]
            logs = [log(first[repeat] / second[repeat]) for repeat in first.keys() & second.keys()]
            if len(logs) >= 5:
                yield stdev(logs)
