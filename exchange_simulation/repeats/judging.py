"""Verdicts: whether two sides differ in a figure beyond chance, judged together with all other rows of their family."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, nan
from typing import Any

import numpy as np

from exchange.estimates import CONFIDENCE, IntervalEstimate
from exchange_simulation.launching.record.noise_summary import MOST_NOISY, TOO_NOISY
from exchange_simulation.repeats.sentences import (
    Finding,
    FindingSentence,
    cannot_tell,
    differ,
    too_few_repeats,
    too_noisy,
)
from exchange_simulation.repeats.sign_flips import LogRatio, estimate_together, hodges_lehmann, repeats_needed

ALPHA = 0.05
"""The chance of any false verdict in a family, and of any interval that misses the true ratio."""
LEAST_RATIO = 1.01
"""A smaller difference is no verdict: log buckets err by 0.27 %, so two equal percentiles may be 0.54 % apart."""
SAME_WITHIN = 1.05
"""A row is decided without a difference if its interval lies within this ratio."""
MOST_SATURATED = 0.5
"""A side with a larger share of saturated repeats did not keep its rate."""
DIFFER = "differ"
CANNOT_TELL = "cannot tell"
NOT_COMPARED = "not compared"
TEST = "sign flips of the log ratios paired by repeat, two-sided"
CORRECTION = "max-T over all rows, step-down"


@dataclass(frozen=True)
class ComparedSide:
    """One side of a comparison: its name in sentences, and the figure's value in each repeat that measured it."""

    name: str
    values: Mapping[int, float]
    kept_rate: bool = True
    """False if the side did not keep the rate that was offered; such a side is not compared."""
    noisy_repeats: Collection[int] = ()
    """The repeats during which others took too much of the processors; empty if noisy repeats are meant to count."""

    def noisy_among(self, repeats: Collection[int]) -> int:
        """Return how many of these repeats were noisy."""
        return len(set(self.noisy_repeats) & set(repeats))


@dataclass(frozen=True, kw_only=True)
class ComparedPair:
    """Two sides that are compared by one figure, over the repeats that measured both."""

    figure: str
    """Name of the figure; pairs of one figure are estimated with a common spread."""
    wording: str
    """The template of the figure's sentence, as in `Finding`."""
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
        if not self.first.kept_rate or not self.second.kept_rate or not self.repeats:
            return False
        firsts, seconds = self.values
        return min(firsts) > 0 and min(seconds) > 0

    @property
    def noisy_repeats(self) -> int:
        """The number of noisy repeats of the noisier side."""
        return max(self.first.noisy_among(self.repeats), self.second.noisy_among(self.repeats))

    @property
    def is_too_noisy(self) -> bool:
        """True if more than half of a side's repeats were noisy: their ratio is the disturbed machine's."""
        return self.noisy_repeats > MOST_NOISY * len(self.repeats)

    @property
    def log_ratios(self) -> dict[int, float]:
        """log(first / second) by repeat."""
        firsts, seconds = self.values
        return {
            repeat: log(first / second) for repeat, first, second in zip(self.repeats, firsts, seconds, strict=True)
        }

    def finding(self, ratio: IntervalEstimate) -> Finding:
        """The facts of this pair for its sentence."""
        value_pairs = list(zip(*self.values, strict=True))
        return Finding(
            wording=self.wording,
            first=self.first.name,
            second=self.second.name,
            ratio=ratio,
            repeats=len(value_pairs),
            lower=sum(first < second for first, second in value_pairs),
            higher=sum(first > second for first, second in value_pairs),
            lowest_ratio=min(first / second for first, second in value_pairs),
            highest_ratio=max(first / second for first, second in value_pairs),
            noisy=self.noisy_repeats,
        )


@dataclass(frozen=True, kw_only=True)
class PairVerdict:
    """What a family's test found about one pair; `ratio` is first over second."""

    outcome: str
    """DIFFER, CANNOT_TELL, TOO_NOISY or NOT_COMPARED."""
    sentence: str
    repeats: Sequence[int]
    ratio: IntervalEstimate | None = None
    p: float | None = None
    p_corrected: float | None = None
    """`p`, corrected for all rows of the family."""
    share_lower: float | None = None
    """The share of repeats in which the first value was the lower one."""


def judge_together(
    pairs: Sequence[ComparedPair], alpha: float, seed: int, differ_sentence: FindingSentence = differ
) -> list[PairVerdict]:
    """A verdict for every pair; all pairs that have enough repeats are one family and are estimated together.

    `alpha` is the level of this test, and `differ_sentence` makes the sentence of two sides that differ.
    """
    needed = repeats_needed(alpha)
    tested_places = [place for place, pair in enumerate(pairs) if pair.is_comparable and len(pair.repeats) >= needed]
    log_ratios = _log_ratios([pairs[place] for place in tested_places], alpha, seed)
    log_ratio_by_place = dict(zip(tested_places, log_ratios, strict=True))
    verdicts: list[PairVerdict] = []
    for place, pair in enumerate(pairs):
        if not pair.is_comparable:
            verdicts.append(PairVerdict(outcome=NOT_COMPARED, sentence=pair.why_not, repeats=pair.repeats))
        elif place in log_ratio_by_place:
            verdicts.append(_verdict_with_interval(pair, log_ratio_by_place[place], differ_sentence))
        else:
            verdicts.append(_verdict_without_interval(pair, needed))
    return verdicts


def _log_ratios(pairs: Sequence[ComparedPair], alpha: float, seed: int) -> list[LogRatio]:
    """The pairs' ratios, estimated over the repeats that any of them has."""
    repeats = sorted({repeat for pair in pairs for repeat in pair.repeats})
    rows = [[pair.log_ratios.get(repeat, nan) for repeat in repeats] for pair in pairs]
    return estimate_together(rows, [pair.figure for pair in pairs], alpha, seed)


def _verdict_with_interval(pair: ComparedPair, log_ratio: LogRatio, differ_sentence: FindingSentence) -> PairVerdict:
    differs = log_ratio.differs and abs(log_ratio.estimate) > log(LEAST_RATIO)
    ratio = IntervalEstimate(
        value=exp(log_ratio.estimate),
        low=exp(log_ratio.estimate - log_ratio.half_width),
        high=exp(log_ratio.estimate + log_ratio.half_width),
    )
    sentence: FindingSentence
    if pair.is_too_noisy:
        outcome = TOO_NOISY
        sentence = too_noisy
    elif differs:
        outcome = DIFFER
        sentence = differ_sentence
    else:
        outcome = CANNOT_TELL
        sentence = cannot_tell
    return PairVerdict(
        outcome=outcome,
        sentence=sentence(pair.finding(ratio)),
        repeats=pair.repeats,
        ratio=ratio,
        p=log_ratio.p,
        p_corrected=log_ratio.p_corrected,
        share_lower=share_lower(*pair.values),
    )


def _verdict_without_interval(pair: ComparedPair, needed: int) -> PairVerdict:
    """The verdict on a pair with fewer repeats than needed: an estimate without an interval, which cannot tell."""
    log_ratios = np.array(list(pair.log_ratios.values()))
    ratio = IntervalEstimate(exp(hodges_lehmann(log_ratios)))
    finding = pair.finding(ratio)
    return PairVerdict(
        outcome=TOO_NOISY if pair.is_too_noisy else CANNOT_TELL,
        sentence=too_noisy(finding) if pair.is_too_noisy else too_few_repeats(finding, needed),
        repeats=pair.repeats,
        ratio=ratio,
        share_lower=share_lower(*pair.values),
    )


def share_lower(first: Sequence[float], second: Sequence[float]) -> float:
    """Effect size: the share of repeats in which the first value was the lower one; a tie counts half."""
    value_pairs = list(zip(first, second, strict=True))
    lower = sum(one < other for one, other in value_pairs)
    equal = sum(one == other for one, other in value_pairs)
    return (lower + 0.5 * equal) / len(value_pairs)


def is_decided(verdict: PairVerdict) -> bool:
    """True if more repeats would change little: the sides differ, are alike within SAME_WITHIN, or are not compared."""
    if verdict.outcome == TOO_NOISY:
        return False
    if verdict.outcome != CANNOT_TELL or verdict.ratio is None:
        return True
    low = verdict.ratio.low
    high = verdict.ratio.high
    if low is None or high is None:
        return False
    return low >= 1 / SAME_WITHIN and high <= SAME_WITHIN


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


def statistics_of(rows: int, look_alpha: float) -> dict[str, Any]:
    """How the verdicts of a family with this many rows were found, as its record says.

    `look_alpha` is the level of one test: below ALPHA if a trial tests several times while it runs.
    """
    return {
        "estimate": "median over repeats; of a ratio, the Hodges-Lehmann estimate of the log ratios paired by repeat",
        "interval": "of a median: bootstrap over repeats; of a ratio: the ratios that the test does not reject",
        "confidence": CONFIDENCE,
        "test": TEST,
        "correction": CORRECTION,
        "alpha": ALPHA,
        "rows": rows,
        "repeats_needed": repeats_needed(look_alpha) if rows else None,
    }
