"""Kinds of trials: the metrics each reads and judges, the arms it compares, and the words of its verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exchange.estimates import IntervalEstimate
from exchange.words import counted
from exchange_simulation.launching.metrics import COMPARISON_METRICS, NAGLE_METRICS, Metric
from exchange_simulation.reports.formats import interval, times


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A row's facts for its sentence; `ratio` is first over second."""

    says: str
    """The metric's wording, in which `larger` and `smaller` are contenders and `times` is their ratio."""
    first: str
    second: str
    ratio: IntervalEstimate
    repeats: int
    lower: int
    """The repeats in which the first was lower; equal ones are neither lower nor higher."""
    higher: int


Wording = Callable[[Finding], str]


def differ(found: Finding) -> str:
    """zeromq is 3.1 times faster than tcp (2.9..3.4), in 9 of 10 repeats; the factor is always above 1."""
    first_is_larger = found.ratio.value > 1
    larger, smaller = (found.first, found.second) if first_is_larger else (found.second, found.first)
    factor = found.ratio if first_is_larger else inverse(found.ratio)
    agreed = found.higher if first_is_larger else found.lower
    says = found.says.format(larger=larger, smaller=smaller, times=times(factor.value))
    return f"{says} {interval(factor)}, in {agreed} of {counted(found.repeats, 'repeats')}"


def hurts_or_helps(found: Finding) -> str:
    """Nagle on hurts: 9.3 times slower (8.1..10.2), in 8 of 8 repeats; the ratio is off over on."""
    slower = found.ratio.value < 1
    factor, verb, how = (inverse(found.ratio), "hurts", "slower") if slower else (found.ratio, "helps", "faster")
    agreed = f"in {found.lower if slower else found.higher} of {counted(found.repeats, 'repeats')}"
    return f"{found.second} {verb}: {times(factor.value)} times {how} {interval(factor)}, {agreed}"


def cannot_tell(found: Finding) -> str:
    """cannot tell: tcp / zeromq is 1.02 (0.95..1.08), below 1 in 4 of 10 repeats."""
    how_often = f"below 1 in {found.lower} of {counted(found.repeats, 'repeats')}"
    low, high = found.ratio.low, found.ratio.high
    holds_one = low is None or high is None or low <= 1.0 <= high
    lead = "cannot tell" if holds_one else "too close to call, under 1%"
    return f"{lead}: {found.first} / {found.second} is {times(found.ratio.value)} {interval(found.ratio)}, {how_often}"


def too_few_repeats(found: Finding, needed: int) -> str:
    """cannot tell from 3 repeats, 6 are needed: tcp / zeromq is 1.02, below 1 in 1 of them."""
    return (
        f"cannot tell from {counted(found.repeats, 'repeats')}, {needed} are needed: {found.first} / {found.second} "
        f"is {times(found.ratio.value)}, below 1 in {found.lower} of {found.repeats}"
    )


def inverse(ratio: IntervalEstimate) -> IntervalEstimate:
    """Second over first."""
    if ratio.low is None or ratio.high is None:
        return IntervalEstimate(1 / ratio.value)
    return IntervalEstimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


@dataclass(frozen=True, kw_only=True)
class Study:
    """A kind of trial."""

    name: str
    """The command that makes such trials and resumes them."""
    metrics: tuple[Metric, ...]
    """In display order."""
    block: str = "rate"
    """The noun for a block."""
    rows_as_json: bool = False
    """--json prints one row for each arm instead of the whole record."""
    against_the_first: bool = False
    """Each contender is compared with the first one only, not with every other one."""
    differ: Wording = differ


COMPARE = Study(name="compare", metrics=COMPARISON_METRICS)
NAGLE = Study(name="nagle", metrics=NAGLE_METRICS, block="block", against_the_first=True, differ=hurts_or_helps)
SWEEP = Study(name="sweep", metrics=COMPARISON_METRICS, block="block", rows_as_json=True)
STUDIES = {study.name: study for study in (COMPARE, NAGLE, SWEEP)}
