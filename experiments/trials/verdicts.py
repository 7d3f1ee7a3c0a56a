"""A comparison's rows: two contenders in one block by one metric, and what can be said of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log

from exchange.estimates import Estimate, ratio_of_medians
from experiments.trials.observations import Observations
from experiments.trials.plan import Plan
from experiments.trials.significance import ALPHA, holm, paired_p, share_lower
from experiments.trials.wording import cannot_tell, not_held
from runs.metrics import Metric

LEAST_RATIO = 1.01
"""A smaller difference is no verdict: two percentiles of log buckets may be 0.54 % apart and the same."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two arms by one metric, in the repeats in which both were measured; what a test needs."""

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
        """Both held their rate, and there is something above zero to divide."""
        held = self.first.is_held and self.second.is_held
        return held and len(self.repeats) > 0 and min(*self.values[0], *self.values[1]) > 0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`ratio` is first over second; `outcome` is "differ", "cannot tell" or "not compared"."""

    pair: Pair
    outcome: str
    sentence: str
    ratio: Estimate | None = None
    p: float | None = None
    p_holm: float | None = None
    share_lower: float | None = None


def judged_pairs(plan: Plan) -> list[tuple[Metric, str, str]]:
    """The rows that a plan leads to: (metric, label, label); every one of them is a test that Holm counts."""
    return [
        (metric, first.label, second.label)
        for metric in plan.study.metrics
        for first, second in plan.pairs
        if metric.judged(first.settings) and metric.judged(second.settings)
    ]


def most_rows(plan: Plan) -> int:
    """Of a family: what one verdict is corrected for."""
    return max(map(len, families(plan)), default=0)


def families(plan: Plan) -> list[list[tuple[Metric, str, str]]]:
    """The rows that are corrected together: all, or those of a metric."""
    rows = judged_pairs(plan)
    if not plan.study.by_metric:
        return [rows]
    return [[row for row in rows if row[0] is metric] for metric in dict.fromkeys(row[0] for row in rows)]


def judge_all(plan: Plan, observed: dict[str, Observations]) -> list[Verdict]:
    """A verdict for every row; only those that are tested take part in the correction."""
    return [verdict for family in families(plan) for verdict in _judge_family(family, plan, observed)]


def _judge_family(
    family: list[tuple[Metric, str, str]], plan: Plan, observed: dict[str, Observations]
) -> list[Verdict]:
    rows = [Pair(metric=m, first=observed[a], second=observed[b]) for m, a, b in family]
    tested = [row for row in rows if row.is_comparable]
    p_values = [paired_p(*row.values) for row in tested]
    corrected = dict(zip(map(id, tested), zip(p_values, holm(p_values), strict=True), strict=True))
    return [_judge(row, *corrected[id(row)], plan) if id(row) in corrected else _unjudged(row) for row in rows]


def _judge(pair: Pair, p: float, p_holm: float, plan: Plan) -> Verdict:
    ratio = ratio_of_medians(*pair.values, plan.seed)
    differs = p_holm < ALPHA and is_apart(ratio)
    words = plan.study.differ if differs else cannot_tell
    contenders = pair.first.arm.contender, pair.second.arm.contender
    return Verdict(
        pair=pair,
        outcome="differ" if differs else "cannot tell",
        sentence=words(pair.metric.says, *contenders, ratio, len(pair.repeats)),
        ratio=ratio,
        p=p,
        p_holm=p_holm,
        share_lower=share_lower(*pair.values),
    )


def is_apart(ratio: Estimate) -> bool:
    """The interval leaves 1 out, and the ratio is more than the instrument's own error."""
    if ratio.low is None or ratio.high is None:
        return False
    return abs(log(ratio.value)) > log(LEAST_RATIO) and not ratio.low <= 1.0 <= ratio.high


def _unjudged(pair: Pair) -> Verdict:
    return Verdict(pair=pair, outcome="not compared", sentence=not_held(pair.first, pair.second))
