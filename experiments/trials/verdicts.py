"""A trial's verdicts: two arms of a block by one metric, whether they differ beyond chance, and in which sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import log

import numpy as np
from scipy import stats

from exchange.estimates import Estimate, ratio_of_medians
from exchange.words import counted
from experiments.trials.observations import Observations
from experiments.trials.plan import Plan
from experiments.trials.study import cannot_tell
from runs.metrics import Metric

ALPHA = 0.05
"""The chance to see any difference where there is none, over all rows that are corrected together."""
MOST_REPEATS_TRIED = 100
LEAST_RATIO = 1.01
"""A smaller difference is no verdict: log buckets err by 0.27 %, so two equal percentiles may be 0.54 % apart."""


def paired_p(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p of Wilcoxon's signed-rank test on the log ratios; a tie counts for neither side."""
    logs = np.log(np.asarray(first, np.float64)) - np.log(np.asarray(second, np.float64))
    if not logs.any():
        return 1.0
    return float(stats.wilcoxon(logs, zero_method="pratt").pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p-value adjusted by Holm's step-down method, to be compared with ALPHA."""
    upwards = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, row in enumerate(upwards):
        highest = max(highest, min(1.0, p_values[row] * (len(p_values) - rank)))
        adjusted[row] = highest
    return adjusted


@cache
def smallest_p(repeats: int) -> float:
    """The test's p if every repeat agrees."""
    return float(stats.wilcoxon(np.arange(1.0, repeats + 1)).pvalue)


def repeats_needed(rows: int) -> int:
    """The fewest repeats that can lead to a verdict if so many rows are tested."""
    enough = (n for n in range(2, MOST_REPEATS_TRIED) if smallest_p(n) * rows < ALPHA)
    return next(enough, MOST_REPEATS_TRIED)


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


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`ratio` is first over second; `outcome` is "differ", "cannot tell" or "not compared"."""

    row: Row
    outcome: str
    sentence: str
    ratio: Estimate | None = None
    p: float | None = None
    p_holm: float | None = None
    share_lower: float | None = None


PlannedRow = tuple[Metric, str, str]
"""(metric, label of the first arm, label of the second)"""


def planned_rows(plan: Plan) -> list[PlannedRow]:
    """All rows that the plan leads to; Holm's correction counts each as a test."""
    return [
        (metric, first.label, second.label)
        for metric in plan.study.metrics
        for first, second in plan.compared_arms
        if metric.judged(first.settings) and metric.judged(second.settings)
    ]


def families(plan: Plan) -> list[list[PlannedRow]]:
    """The rows that are corrected together: all of them, or those of each metric."""
    rows = planned_rows(plan)
    if not plan.study.by_metric:
        return [rows]
    return [[row for row in rows if row[0] is metric] for metric in dict.fromkeys(row[0] for row in rows)]


def most_rows(plan: Plan) -> int:
    """The size of the largest family."""
    return max(map(len, families(plan)), default=0)


def unreachable(plan: Plan) -> str | None:
    """A sentence if no repeat of this plan can ever lead to a verdict, else None."""
    rows = most_rows(plan)
    needed = repeats_needed(rows) if rows else 0
    if plan.repeats >= needed:
        return None
    repeats = counted(plan.repeats, "repeats")
    return (
        f"{repeats} can reach no verdict: over {counted(rows, 'rows')} a verdict needs p < {ALPHA / rows:.2g}, and the "
        f"smallest p of {repeats} is {smallest_p(plan.repeats):.2g}; {needed} repeats are needed"
    )


def judge_all(plan: Plan, observed: dict[str, Observations]) -> list[Verdict]:
    """A verdict for every row; only tested rows take part in the correction."""
    return [verdict for family in families(plan) for verdict in _judge_family(family, plan, observed)]


def _judge_family(family: list[PlannedRow], plan: Plan, observed: dict[str, Observations]) -> list[Verdict]:
    rows = [Row(metric=m, first=observed[a], second=observed[b]) for m, a, b in family]
    tested = [row for row in rows if row.is_comparable]
    p_values = [paired_p(*row.values) for row in tested]
    corrected = dict(zip(map(id, tested), zip(p_values, holm(p_values), strict=True), strict=True))
    return [_judge(row, *corrected[id(row)], plan) if id(row) in corrected else _unjudged(row) for row in rows]


def _judge(row: Row, p: float, p_holm: float, plan: Plan) -> Verdict:
    ratio = ratio_of_medians(*row.values, plan.seed)
    differs = p_holm < ALPHA and is_apart(ratio)
    wording = plan.study.differ if differs else cannot_tell
    contenders = row.first.arm.contender, row.second.arm.contender
    return Verdict(
        row=row,
        outcome="differ" if differs else "cannot tell",
        sentence=wording(row.metric.says, *contenders, ratio, len(row.repeats)),
        ratio=ratio,
        p=p,
        p_holm=p_holm,
        share_lower=share_lower(*row.values),
    )


def is_apart(ratio: Estimate) -> bool:
    """True if the interval excludes 1 and the ratio exceeds the instrument's own error."""
    if ratio.low is None or ratio.high is None:
        return False
    return abs(log(ratio.value)) > log(LEAST_RATIO) and not ratio.low <= 1.0 <= ratio.high


def _unjudged(row: Row) -> Verdict:
    return Verdict(row=row, outcome="not compared", sentence=not_compared(row.first, row.second))


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
