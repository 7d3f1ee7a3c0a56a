"""Kinds of trials: the metrics each reads and judges, the arms it compares, and the words of its verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exchange.estimates import Estimate
from runs.metrics import COMPARISON_METRICS, NAGLE_METRICS, Metric

Wording = Callable[[str, str, str, Estimate, int], str]
"""A function that words a verdict from the metric's wording, both contenders, their ratio and the number of repeats."""


def differ(says: str, first: str, second: str, ratio: Estimate, _repeats: int) -> str:
    """zeromq is 3.1 times faster than tcp (2.9..3.4); the factor is always above 1."""
    larger, smaller = (first, second) if ratio.value > 1 else (second, first)
    factor = ratio if ratio.value > 1 else inverse(ratio)
    return f"{says.format(larger=larger, smaller=smaller, times=times(factor.value))} {interval(factor)}"


def hurts_or_helps(_says: str, _first: str, second: str, ratio: Estimate, _repeats: int) -> str:
    """Nagle hurts: 9.3 times slower (8.1..10.2); `ratio` is the time without Nagle over the time with it."""
    slower = ratio.value < 1
    factor, verb, how = (inverse(ratio), "hurts", "slower") if slower else (ratio, "helps", "faster")
    return f"{second} {verb}: {times(factor.value)} times {how} {interval(factor)}"


def cannot_tell(_says: str, first: str, second: str, ratio: Estimate, repeats: int) -> str:
    """cannot tell: tcp / zeromq is 1.02 (0.95..1.08)."""
    if repeats < 2:
        return f"cannot tell: {first} / {second} is {times(ratio.value)}, of one repeat"
    return f"cannot tell: {first} / {second} is {times(ratio.value)} {interval(ratio)}"


def inverse(ratio: Estimate) -> Estimate:
    """Second over first."""
    if ratio.low is None or ratio.high is None:
        return Estimate(1 / ratio.value)
    return Estimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


def times(factor: float, like: float | None = None) -> str:
    """Two or three digits: 1.04, 3.1, 25. The ends of an interval get as many decimals as its middle, `like`."""
    size = factor if like is None else like
    return f"{factor:,.{2 if size < 2 else 1 if size < 20 else 0}f}"


def interval(ratio: Estimate) -> str:
    """(2.9..3.4), or nothing if the estimate has no interval."""
    if ratio.low is None or ratio.high is None:
        return ""
    return f"({times(ratio.low, ratio.value)}..{times(ratio.high, ratio.value)})"


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
    by_metric: bool = False
    """Verdicts are corrected within their metric's rows, not over all rows."""
    differ: Wording = differ


COMPARE = Study(name="compare", metrics=COMPARISON_METRICS)
NAGLE = Study(
    name="nagle", metrics=NAGLE_METRICS, block="pair", against_the_first=True, by_metric=True,
    differ=hurts_or_helps,
)  # fmt: skip
SWEEP = Study(name="sweep", metrics=COMPARISON_METRICS, block="block", rows_as_json=True)
STUDIES = {study.name: study for study in (COMPARE, NAGLE, SWEEP)}
