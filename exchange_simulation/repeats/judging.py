"""Verdicts: whether two sides differ in a figure beyond chance, judged together with all other rows of their family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, nan
from typing import Any

import numpy as np

from exchange.estimates import CONFIDENCE, IntervalEstimate
from exchange_simulation.repeats.sentences import Finding, Wording, cannot_tell, differ, too_few_repeats
from exchange_simulation.repeats.sign_flips import LogRatio, estimate_together, hodges_lehmann, repeats_needed

ALPHA = 0.05
"""The chance of any false verdict in a family, and of any interval that misses the true ratio."""
LEAST_RATIO = 1.01
"""A smaller difference is no verdict: log buckets err by 0.27 %, so two equal percentiles may be 0.54 % apart."""
SAME_WITHIN = 1.05
"""A row is decided without a difference if its interval lies within this ratio."""
MOST_SATURATED = 0.5
"""A side with a larger share of saturated repeats did not keep its rate."""
DIFFER, CANNOT_TELL, NOT_COMPARED = "differ", "cannot tell", "not compared"
TEST = "sign flips of the log ratios paired by repeat, two-sided"
CORRECTION = "max-T over all rows, step-down"


@dataclass(frozen=True)
class ComparedSide:
    """One side of a comparison: its name in sentences, and the figure's value in each repeat that measured it."""

    name: str
    values: Mapping[int, float]
    kept_rate: bool = True
    """False if it did not keep the rate that was offered; then it is not compared."""


@dataclass(frozen=True, kw_only=True)
class ComparedPair:
    """Two sides by one figure, in the repeats that measured both."""

    figure: str
    """Rows of one figure have about the same spread."""
    says: str
    """The figure's wording, as in `Finding`."""
    first: ComparedSide
    second: ComparedSide
    why_not: str = "not measured on both sides"
    """The sentence if the two are not compared."""

    @cached_property
    def repeats(self) -> list[int]:
        return sorted(self.first.values.keys() & self.second.values.keys())

    @cached_property
    def values(self) -> tuple[list[float], list[float]]:
        """The values of first and second, in the repeats that measured both."""
        first = [self.first.values[repeat] for repeat in self.repeats]
        second = [self.second.values[repeat] for repeat in self.repeats]
        return first, second

    @property
    def is_comparable(self) -> bool:
        """True if both sides kept their rate and all values are above zero."""
        kept_rate = self.first.kept_rate and self.second.kept_rate
        return kept_rate and len(self.repeats) > 0 and min(*self.values[0], *self.values[1]) > 0

    @property
    def log_ratios(self) -> dict[int, float]:
        """log(first / second) by repeat."""
        return {repeat: log(one / other) for repeat, one, other in zip(self.repeats, *self.values, strict=True)}

    def finding(self, ratio: IntervalEstimate) -> Finding:
        """The facts of this pair for its sentence."""
        both = list(zip(*self.values, strict=True))
        return Finding(
            says=self.says,
            first=self.first.name,
            second=self.second.name,
            ratio=ratio,
            repeats=len(both),
            lower=sum(first < second for first, second in both),
            higher=sum(first > second for first, second in both),
        )


@dataclass(frozen=True, kw_only=True)
class PairVerdict:
    """`ratio` is first over second; `outcome` is DIFFER, CANNOT_TELL or NOT_COMPARED."""

    outcome: str
    sentence: str
    repeats: Sequence[int]
    ratio: IntervalEstimate | None = None
    p: float | None = None
    p_corrected: float | None = None
    share_lower: float | None = None


def judge_together(
    pairs: Sequence[ComparedPair], alpha: float, seed: int, differ_in_words: Wording = differ
) -> list[PairVerdict]:
    """A verdict for every pair; all pairs that have enough repeats are one family and are estimated together."""
    needed = repeats_needed(alpha)
    tested = [pair for pair in pairs if pair.is_comparable and len(pair.repeats) >= needed]
    ratios = dict(zip(map(id, tested), _log_ratios(tested, alpha, seed), strict=True))
    verdicts: list[PairVerdict] = []
    for pair in pairs:
        if not pair.is_comparable:
            verdicts.append(PairVerdict(outcome=NOT_COMPARED, sentence=pair.why_not, repeats=pair.repeats))
        elif id(pair) in ratios:
            verdicts.append(_judged(pair, ratios[id(pair)], differ_in_words))
        else:
            verdicts.append(_of_few_repeats(pair, needed))
    return verdicts


def _log_ratios(pairs: Sequence[ComparedPair], alpha: float, seed: int) -> list[LogRatio]:
    """The pairs' ratios, estimated over the repeats that any of them has."""
    repeats = sorted({repeat for pair in pairs for repeat in pair.repeats})
    rows = [[pair.log_ratios.get(repeat, nan) for repeat in repeats] for pair in pairs]
    return estimate_together(rows, [pair.figure for pair in pairs], alpha, seed)


def _judged(pair: ComparedPair, log_ratio: LogRatio, differ_in_words: Wording) -> PairVerdict:
    differs = log_ratio.differs and abs(log_ratio.estimate) > log(LEAST_RATIO)
    ratio = IntervalEstimate(*(exp(log_ratio.estimate + side * log_ratio.half_width) for side in (0, -1, 1)))
    in_words = differ_in_words if differs else cannot_tell
    return PairVerdict(
        outcome=DIFFER if differs else CANNOT_TELL,
        sentence=in_words(pair.finding(ratio)),
        repeats=pair.repeats,
        ratio=ratio,
        p=log_ratio.p,
        p_corrected=log_ratio.p_corrected,
        share_lower=share_lower(*pair.values),
    )


def _of_few_repeats(pair: ComparedPair, needed: int) -> PairVerdict:
    """An estimate without an interval."""
    ratio = IntervalEstimate(exp(hodges_lehmann(np.array(list(pair.log_ratios.values())))))
    return PairVerdict(
        outcome=CANNOT_TELL,
        sentence=too_few_repeats(pair.finding(ratio), needed),
        repeats=pair.repeats,
        ratio=ratio,
        share_lower=share_lower(*pair.values),
    )


def share_lower(first: Sequence[float], second: Sequence[float]) -> float:
    """Effect size: the share of repeats in which the first value was the lower one; a tie counts half."""
    both = list(zip(first, second, strict=True))
    lower = sum(one < other for one, other in both)
    equal = sum(one == other for one, other in both)
    return (lower + 0.5 * equal) / len(both)


def is_decided(verdict: PairVerdict) -> bool:
    """True if more repeats would change little: the sides differ, are alike within SAME_WITHIN, or are not compared."""
    if verdict.outcome != CANNOT_TELL or verdict.ratio is None:
        return True
    low, high = verdict.ratio.low, verdict.ratio.high
    return low is not None and high is not None and low >= 1 / SAME_WITHIN and high <= SAME_WITHIN


def verdict_as_dict(verdict: PairVerdict) -> dict[str, Any]:
    """A verdict's fields in a record, beside those that say what was compared."""
    fields: dict[str, Any] = {"outcome": verdict.outcome, "sentence": verdict.sentence}
    if verdict.ratio:
        fields |= {"ratio": verdict.ratio.value, "low": verdict.ratio.low, "high": verdict.ratio.high}
    return {
        **fields,
        "p": verdict.p,
        "p_corrected": verdict.p_corrected,
        "share_of_repeats_first_lower": verdict.share_lower,
        "repeats": list(verdict.repeats),
    }


def statistics_of(rows: int, alpha: float) -> dict[str, Any]:
    """How the verdicts of a family with so many rows were found, as its record says."""
    return {
        "estimate": "median over repeats; of a ratio, the Hodges-Lehmann estimate of the log ratios paired by repeat",
        "interval": "of a median: bootstrap over repeats; of a ratio: the ratios that the test does not reject",
        "confidence": CONFIDENCE,
        "test": TEST,
        "correction": CORRECTION,
        "alpha": ALPHA,
        "rows": rows,
        "repeats_needed": repeats_needed(alpha) if rows else None,
    }
