"""A comparison's rows: two contenders in one block by one metric, and what can be said of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from experiments.trials.estimates import Estimate, ratio_of_medians
from experiments.trials.metrics import METRICS, Metric
from experiments.trials.observations import Observations
from experiments.trials.plan import Plan
from experiments.trials.significance import ALPHA, holm, paired_p, share_lower
from experiments.trials.wording import cannot_tell, differ, not_held

LEAST_RATIO = 1.01
"""A smaller difference is no verdict: two percentiles of log buckets may be 0.54 % apart and the same."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two arms by one metric, in the repeats in which both were measured; what a test needs."""

    metric: Metric
    first: Observations
    second: Observations

    @property
    def repeats(self) -> list[int]:
        both = self.first.values(self.metric).keys() & self.second.values(self.metric).keys()
        return sorted(both)

    @property
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
        for metric in METRICS
        for first, second in plan.pairs
        if metric.judged(first.settings) and metric.judged(second.settings)
    ]


def judge_all(plan: Plan, observed: dict[str, Observations]) -> list[Verdict]:
    """A verdict for every row; only those that are tested take part in the correction."""
    rows = [Pair(metric=m, first=observed[a], second=observed[b]) for m, a, b in judged_pairs(plan)]
    tested = [row for row in rows if row.is_comparable]
    p_values = [paired_p(*row.values) for row in tested]
    corrected = dict(zip(map(id, tested), zip(p_values, holm(p_values), strict=True), strict=True))
    return [_judge(row, *corrected[id(row)], plan.seed) if id(row) in corrected else _unjudged(row) for row in rows]


def _judge(pair: Pair, p: float, p_holm: float, seed: int) -> Verdict:
    ratio = ratio_of_medians(*pair.values, seed)
    differs = p_holm < ALPHA and is_apart(ratio)
    words = differ if differs else cannot_tell
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
