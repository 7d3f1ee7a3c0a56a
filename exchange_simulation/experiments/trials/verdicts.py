"""A trial's verdicts: whether two arms of a block differ in a metric beyond chance, with the sentence that says so.

The smallest difference that a plan is likely to find is computed here too; it is announced before the first run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from math import exp, log, nan, sqrt
from pathlib import Path
from statistics import NormalDist, median, stdev

import numpy as np

from exchange.estimates import IntervalEstimate
from exchange.json_records import ComparisonRecord, Record, decode
from exchange.words import counted
from exchange_simulation.experiments.trials.observations import Observations
from exchange_simulation.experiments.trials.plan import Plan
from exchange_simulation.experiments.trials.study import Finding, cannot_tell, too_few_repeats
from exchange_simulation.launching.metrics import Metric
from exchange_simulation.repeats.sign_flips import (
    CAUTION,
    LogRatio,
    estimate_together,
    hodges_lehmann,
    repeats_needed,
)

ALPHA = 0.05
"""The chance of any false verdict in a trial, and of any interval that misses the true ratio."""
SAME_WITHIN = 1.05
"""A trial that goes on until every row is decided ends if all intervals without a verdict lie within this ratio."""
LEAST_RATIO = 1.01
"""A smaller difference is no verdict: log buckets err by 0.27 %, so two equal percentiles may be 0.54 % apart."""
ASSUMED_DEVIATION = 0.145
"""How far the log ratio of two p50 deviates from repeat to repeat, as measured on a busy machine with two cores."""
POWER = 0.8
"""The chance with which a difference that a plan announces is found."""
ANNOUNCED = "due_p50_us"
LATEST_TRIALS = 5
"""At most this many earlier trials are read."""


def share_lower(first: Sequence[float], second: Sequence[float]) -> float:
    """Effect size: the share of repeats in which the first value was the lower one; a tie counts half."""
    both = list(zip(first, second, strict=True))
    return sum((a < b) + 0.5 * (a == b) for a, b in both) / len(both)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Two arms by one metric, in the repeats that measured both."""

    metric: Metric
    first: Observations
    second: Observations

    @cached_property
    def repeats(self) -> list[int]:
        both = self.first.values(self.metric).keys() & self.second.values(self.metric).keys()
        return sorted(both)

    @cached_property
    def values(self) -> tuple[list[float], list[float]]:
        first, second = self.first.values(self.metric), self.second.values(self.metric)
        return [first[repeat] for repeat in self.repeats], [second[repeat] for repeat in self.repeats]

    @property
    def is_comparable(self) -> bool:
        """True if both arms kept their rate and all values are above zero."""
        kept_rate = self.first.kept_rate and self.second.kept_rate
        return kept_rate and len(self.repeats) > 0 and min(*self.values[0], *self.values[1]) > 0

    @property
    def log_ratios(self) -> dict[int, float]:
        """log(first / second) by repeat."""
        return {repeat: log(one / other) for repeat, one, other in zip(self.repeats, *self.values, strict=True)}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`ratio` is first over second; `outcome` is "differ", "cannot tell" or "not compared"."""

    row: Row
    outcome: str
    sentence: str
    ratio: IntervalEstimate | None = None
    p: float | None = None
    p_corrected: float | None = None
    share_lower: float | None = None


PlannedRow = tuple[Metric, str, str]
"""(metric, label of the first arm, label of the second)"""


def planned_rows(plan: Plan) -> list[PlannedRow]:
    """All rows that the plan leads to. They are one family: the more there are, the wider every interval."""
    return [
        (metric, first.label, second.label)
        for metric in plan.study.metrics
        for first, second in plan.compared_arms
        if metric.judged(first.settings) and metric.judged(second.settings)
    ]


def alpha_of(plan: Plan) -> float:
    """The level of one look at the results of a trial that goes on: those that have enough repeats share ALPHA."""
    share = next(n for n in count(1) if sum(look >= repeats_needed(ALPHA / n) for look in plan.looks) <= n)
    return ALPHA / share


def unreachable(plan: Plan) -> str | None:
    """A sentence if no repeat of this plan can ever lead to a verdict, else None."""
    most, needed = plan.longest.repeats, repeats_needed(alpha_of(plan))
    if most >= needed or not planned_rows(plan):
        return None
    return (
        f"{counted(most, 'repeats')} cannot reach a verdict: {needed} are needed, since {needed - 1} agree by chance "
        f"in {100 * 2.0 ** (2 - needed):.2g}% of trials, and at most {100 * CAUTION * alpha_of(plan):.2g}% are allowed"
    )


def judge_all(plan: Plan, observed: dict[str, Observations]) -> list[Verdict]:
    """A verdict for every row; all rows that have enough repeats are estimated together."""
    rows = [Row(metric=m, first=observed[a], second=observed[b]) for m, a, b in planned_rows(plan)]
    needed = repeats_needed(alpha_of(plan))
    tested = [row for row in rows if row.is_comparable and len(row.repeats) >= needed]
    found = dict(zip(map(id, tested), _estimate_together(tested, plan), strict=True))
    return [_verdict(row, found.get(id(row)), plan) for row in rows]


def _estimate_together(rows: list[Row], plan: Plan) -> list[LogRatio]:
    """Verdicts of the rows, estimated over the repeats that any of them has."""
    repeats = sorted({repeat for row in rows for repeat in row.repeats})
    logs = [[row.log_ratios.get(repeat, nan) for repeat in repeats] for row in rows]
    return estimate_together(logs, [row.metric.name for row in rows], alpha_of(plan), plan.seed)


def _verdict(row: Row, found: LogRatio | None, plan: Plan) -> Verdict:
    if not row.is_comparable:
        return Verdict(row=row, outcome="not compared", sentence=not_compared(row.first, row.second))
    if found is None:
        return _of_few_repeats(row, repeats_needed(alpha_of(plan)))
    differs = found.differs and abs(found.estimate) > log(LEAST_RATIO)
    ratio = IntervalEstimate(*(exp(found.estimate + side * found.half_width) for side in (0, -1, 1)))
    return Verdict(
        row=row,
        outcome="differ" if differs else "cannot tell",
        sentence=(plan.study.differ if differs else cannot_tell)(_finding(row, ratio)),
        ratio=ratio,
        p=found.p,
        p_corrected=found.p_corrected,
        share_lower=share_lower(*row.values),
    )


def _of_few_repeats(row: Row, needed: int) -> Verdict:
    """An estimate without an interval."""
    ratio = IntervalEstimate(exp(hodges_lehmann(np.array(list(row.log_ratios.values())))))
    sentence = too_few_repeats(_finding(row, ratio), needed)
    return Verdict(row=row, outcome="cannot tell", sentence=sentence, ratio=ratio, share_lower=share_lower(*row.values))


def is_decided(verdict: Verdict) -> bool:
    """True if more repeats would change little: the arms differ, are alike within SAME_WITHIN, or are not compared."""
    if verdict.outcome != "cannot tell" or verdict.ratio is None:
        return True
    low, high = verdict.ratio.low, verdict.ratio.high
    return low is not None and high is not None and low >= 1 / SAME_WITHIN and high <= SAME_WITHIN


def _finding(row: Row, ratio: IntervalEstimate) -> Finding:
    first, second = row.values
    return Finding(
        says=row.metric.says,
        first=row.first.arm.contender,
        second=row.second.arm.contender,
        ratio=ratio,
        repeats=len(row.repeats),
        lower=sum(a < b for a, b in zip(first, second, strict=True)),
        higher=sum(a > b for a, b in zip(first, second, strict=True)),
    )


def not_compared(first: Observations, second: Observations) -> str:
    """tcp did not hold 16,000 orders/s (8 of 10 runs saturated)."""
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


def detectable(plan: Plan, results: Path | None) -> str | None:
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
    limit, power = NormalDist().inv_cdf(1 - alpha / (2 * rows)), NormalDist().inv_cdf(POWER)
    return exp((limit + power) * deviation / sqrt(repeats) * (1 + 1.6 / repeats + (4 + 20 / rows) / repeats**2))


def deviations(results: Path) -> Iterator[float]:
    """The standard deviation of each compared row's log ratios of p50 in the latest trials of a folder.

    A record that is damaged, or that another version wrote, is left out.
    """
    found: list[Path] = []
    with contextlib.suppress(OSError):
        found = sorted(results.glob("*/comparison.json"), key=lambda path: path.stat().st_mtime)
    for path in found[-LATEST_TRIALS:]:
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
