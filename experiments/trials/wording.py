"""Verdicts in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exchange.estimates import Estimate

if TYPE_CHECKING:
    from experiments.trials.observations import Observations


def differ(says: str, first: str, second: str, ratio: Estimate, _repeats: int) -> str:
    """zeromq is 3.1 times faster than tcp (2.9..3.4): always told so that the factor is above 1."""
    larger, smaller = (first, second) if ratio.value > 1 else (second, first)
    factor = ratio if ratio.value > 1 else inverse(ratio)
    return f"{says.format(larger=larger, smaller=smaller, times=times(factor.value))} {interval(factor)}"


def hurts_or_helps(_says: str, _first: str, second: str, ratio: Estimate, _repeats: int) -> str:
    """Nagle hurts: 9.3 times slower (8.1..10.2); `ratio` is without over with, of a time."""
    slower = ratio.value < 1
    factor, verb, how = (inverse(ratio), "hurts", "slower") if slower else (ratio, "helps", "faster")
    return f"{second} {verb}: {times(factor.value)} times {how} {interval(factor)}"


def cannot_tell(_says: str, first: str, second: str, ratio: Estimate, repeats: int) -> str:
    """cannot tell: tcp / zeromq is 1.02 (0.95..1.08)."""
    if repeats < 2:
        return f"cannot tell: {first} / {second} is {times(ratio.value)}, of one repeat"
    return f"cannot tell: {first} / {second} is {times(ratio.value)} {interval(ratio)}"


def not_held(first: Observations, second: Observations) -> str:
    """tcp did not hold 16,000 orders/s (8 of 10 runs saturated)."""
    both = (first, second)
    absent = [f"{observed.arm.contender} has no valid run" for observed in both if not observed.runs]
    lacking = [observed for observed in both if not observed.is_held]
    said = [_not_held(lacking)] if lacking else []
    return "; ".join(said + absent) or "not measured on both sides"


def _not_held(lacking: list[Observations]) -> str:
    rate = lacking[0].arm.settings.orders_per_s
    offered = f"{rate:,.10g} orders/s" if rate is not None else "its rate"
    who = f"{lacking[0].arm.contender} did not hold" if len(lacking) == 1 else "neither held"
    saturated = " and ".join(f"{observed.saturated} of {len(observed.runs)}" for observed in lacking)
    return f"{who} {offered} ({saturated} runs saturated)"


def inverse(ratio: Estimate) -> Estimate:
    """Second over first."""
    if ratio.low is None or ratio.high is None:
        return Estimate(1 / ratio.value)
    return Estimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


def times(factor: float, like: float | None = None) -> str:
    """Digits that count: 1.04, 3.1, 25; the ends of an interval get as many decimals as its middle."""
    size = factor if like is None else like
    return f"{factor:,.{2 if size < 2 else 1 if size < 20 else 0}f}"


def interval(ratio: Estimate) -> str:
    """(2.9..3.4); empty where there is none."""
    if ratio.low is None or ratio.high is None:
        return ""
    return f"({times(ratio.low, ratio.value)}..{times(ratio.high, ratio.value)})"
