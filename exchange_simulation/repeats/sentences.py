"""The sentences of verdicts, for whatever two sides were compared."""

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

    says: str
    """The figure's wording, in which `larger` and `smaller` are the sides and `times` is their ratio."""
    first: str
    second: str
    ratio: IntervalEstimate
    repeats: int
    lower: int
    """The repeats in which the first was lower; equal ones are neither lower nor higher."""
    higher: int


Wording = Callable[[Finding], str]


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
    says = finding.says.format(larger=larger, smaller=smaller, times=ratio_in_words(factor.value))
    return f"{says} {interval_in_words(factor)}, in {agreed} of {counted(finding.repeats, 'repeats')}"


def cannot_tell(finding: Finding) -> str:
    """The sentence of two sides between which no difference was found.

    For example: cannot tell: tcp / zeromq is 1.02 (0.95..1.08), below 1 in 4 of 10 repeats
    """
    how_often = f"below 1 in {finding.lower} of {counted(finding.repeats, 'repeats')}"
    low, high = finding.ratio.low, finding.ratio.high
    holds_one = low is None or high is None or low <= 1.0 <= high
    lead = "cannot tell" if holds_one else "too close to call, under 1%"
    ratio = f"{ratio_in_words(finding.ratio.value)} {interval_in_words(finding.ratio)}"
    return f"{lead}: {finding.first} / {finding.second} is {ratio}, {how_often}"


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
    return (
        f"{counted(repeats, 'repeats')} cannot reach a verdict: {needed} are needed, since {needed - 1} agree by "
        f"chance in {100 * 2.0 ** (2 - needed):.2g}% of trials, and at most {100 * CAUTION * alpha:.2g}% are allowed"
    )


def inverse(ratio: IntervalEstimate) -> IntervalEstimate:
    """Second over first."""
    if ratio.low is None or ratio.high is None:
        return IntervalEstimate(1 / ratio.value)
    return IntervalEstimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)
