"""The sentences of verdicts on two sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exchange.estimates import IntervalEstimate
from exchange.unique import unique
from exchange.words import counted
from exchange_simulation.launching.record.noise import MOST_SHARE
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
    lowest_ratio: float
    """The smallest ratio of any repeat."""
    highest_ratio: float
    noisy: int = 0
    """The number of repeats during which others took too much of the processors, on the noisier side."""


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

    It has the range of the repeats in place of a ratio, since there is no interval.

    For example: cannot tell from 3 repeats, 6 are needed: tcp / zeromq was 0.95 to 1.10 in them
    """
    return (
        f"cannot tell from {counted(finding.repeats, 'repeats')}, {needed} are needed: "
        f"{finding.first} / {finding.second} was {range_of_repeats(finding)}"
    )


def too_noisy(finding: Finding) -> str:
    """The sentence of two sides whose repeats were disturbed too often.

    For example: too noisy to say: others took more than 5% of all processors beside 6 of 6 repeats; amqp / zeromq was
    0.01 to 0.29 in them
    """
    noisy_repeats = f"{finding.noisy} of {counted(finding.repeats, 'repeats')}"
    return (
        f"too noisy to say: others took more than {MOST_SHARE:.0%} of all processors beside {noisy_repeats}; "
        f"{finding.first} / {finding.second} was {range_of_repeats(finding)}"
    )


def range_of_repeats(finding: Finding) -> str:
    """The ratios of all repeats, lowest to highest. For example: 0.95 to 1.10 in them; of one repeat: 1.02"""
    if finding.repeats == 1:
        return ratio_in_words(finding.lowest_ratio)
    ends = unique([ratio_in_words(finding.lowest_ratio), ratio_in_words(finding.highest_ratio)])
    return f"{' to '.join(ends)} in them"


def cannot_reach_a_verdict(repeats: int, alpha: float) -> str | None:
    """A sentence if this many repeats can never lead to a verdict at this level, else None."""
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
