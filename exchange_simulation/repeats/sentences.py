"""The sentences of verdicts on two sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exchange.estimates import IntervalEstimate
from exchange.words import counted
from exchange_simulation.repeats.sign_flips import CAUTION, repeats_needed
from exchange_simulation.reports.formats.ratios import interval_in_words, ratio_in_words


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The facts of a comparison for its sentence; `ratio` is first over second."""

    wording: str
    """The template of the figure's sentence: {larger} and {smaller} are the sides, and {times} is their ratio."""
    first: str
    second: str
    ratio: IntervalEstimate
    repeats: int
    lower: int
    """The number of repeats in which the first side was lower; a tie is neither lower nor higher."""
    higher: int


FindingSentence = Callable[[Finding], str]
"""Makes the sentence of a finding."""


def differ(finding: Finding) -> str:
    """The sentence of two sides that differ; the factor is always above 1.

    For example: zeromq is 3.1 times faster than tcp (2.9..3.4), in 9 of 10 repeats
    """
    first_is_larger = finding.ratio.value > 1
    if first_is_larger:
        larger = finding.first
        smaller = finding.second
        factor = finding.ratio
        agreed = finding.higher
    else:
        larger = finding.second
        smaller = finding.first
        factor = inverse(finding.ratio)
        agreed = finding.lower
    comparison = finding.wording.format(larger=larger, smaller=smaller, times=ratio_in_words(factor.value))
    return f"{comparison} {interval_in_words(factor)}, in {agreed} of {counted(finding.repeats, 'repeats')}"


def cannot_tell(finding: Finding) -> str:
    """The sentence of two sides between which no difference was found.

    For example: cannot tell: tcp / zeromq is 1.02 (0.95..1.08), below 1 in 4 of 10 repeats
    """
    repeats_below_one = f"below 1 in {finding.lower} of {counted(finding.repeats, 'repeats')}"
    low = finding.ratio.low
    high = finding.ratio.high
    contains_one = low is None or high is None or low <= 1.0 <= high
    lead = "cannot tell" if contains_one else "too close to call, under 1%"
    ratio = f"{ratio_in_words(finding.ratio.value)} {interval_in_words(finding.ratio)}"
    return f"{lead}: {finding.first} / {finding.second} is {ratio}, {repeats_below_one}"


def too_few_repeats(finding: Finding, needed: int) -> str:
    """The sentence of two sides with fewer repeats than a verdict needs.

    For example: cannot tell from 3 repeats, 6 are needed: tcp / zeromq is 1.02, below 1 in 1 of 3
    """
    return (
        f"cannot tell from {counted(finding.repeats, 'repeats')}, {needed} are needed: "
        f"{finding.first} / {finding.second} is {ratio_in_words(finding.ratio.value)}, "
        f"below 1 in {finding.lower} of {finding.repeats}"
    )


def cannot_reach_a_verdict(repeats: int, alpha: float) -> str | None:
    """A sentence if so many repeats can never lead to a verdict at this level, else None."""
    needed = repeats_needed(alpha)
    if repeats >= needed:
        return None
    percent_by_chance = 100 * 2.0 ** (2 - needed)  # the chance that needed - 1 repeats have the same sign
    percent_allowed = 100 * CAUTION * alpha
    return (
        f"{counted(repeats, 'repeats')} cannot reach a verdict: {needed} are needed, since {needed - 1} agree by "
        f"chance in {percent_by_chance:.2g}% of trials, and at most {percent_allowed:.2g}% are allowed"
    )


def inverse(ratio: IntervalEstimate) -> IntervalEstimate:
    """The ratio of second over first, from the ratio of first over second."""
    if ratio.low is None or ratio.high is None:
        return IntervalEstimate(1 / ratio.value)
    return IntervalEstimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)
