"""Kinds of trials: the metrics each reads and judges, the arms it compares, and the words of its verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from exchange.words import counted
from exchange_simulation.launching.metrics import COMPARISON_METRICS, NAGLE_METRICS, Metric
from exchange_simulation.repeats.sentences import Finding, FindingSentence, differ, inverse
from exchange_simulation.reports.formats.ratios import interval_in_words, ratio_in_words


def hurts_or_helps(finding: Finding) -> str:
    """Return the sentence about Nagle's algorithm on, compared with off, if they differ.

    `finding.first` is off, and `finding.second` is on. The ratio is the time with off over the time with on, so below 1
    orders take longer with Nagle's algorithm.

    For example: Nagle on hurts: 9.3 times slower (8.1..10.2), in 8 of 8 repeats
    """
    if finding.ratio.value < 1:
        factor = inverse(finding.ratio)
        effect = f"hurts: {ratio_in_words(factor.value)} times slower"
        agreed = finding.lower
    else:
        factor = finding.ratio
        effect = f"helps: {ratio_in_words(factor.value)} times faster"
        agreed = finding.higher
    return (
        f"{finding.second} {effect} {interval_in_words(factor)}, in {agreed} of {counted(finding.repeats, 'repeats')}"
    )


@dataclass(frozen=True, kw_only=True)
class Study:
    """A kind of trial."""

    name: str
    """The command that makes such trials and resumes them."""
    metrics: tuple[Metric, ...]
    """The metrics of an arm, in the order in which they are shown."""
    block: str = "rate"
    """The noun for a block in sentences."""
    rows_as_json: bool = False
    """True if --json prints one row for each arm instead of the whole record."""
    compares_with_first: bool = False
    """True if each contender is compared with the first only, and not with every other contender."""
    sentence_if_different: FindingSentence = differ
    """Makes the sentence of two arms that differ."""


COMPARE = Study(name="compare", metrics=COMPARISON_METRICS)
NAGLE = Study(
    name="nagle", metrics=NAGLE_METRICS, block="block", compares_with_first=True, sentence_if_different=hurts_or_helps
)
SWEEP = Study(name="sweep", metrics=COMPARISON_METRICS, block="block", rows_as_json=True)
STUDIES = {study.name: study for study in (COMPARE, NAGLE, SWEEP)}
