"""The dose-response curve of a capacity: how the chance of holding an objective falls with the rate.

This module does not depend on the exchange.

With y, the logarithm of a probe's figure over its bound, and x, the logarithm of its rate, the model is

    y = A (exp(b (x - c) / A) - 1) + noise        c the capacity, b the slope there, -A the floor of an idle system

A probe holds if y <= 0. The noise has the median 0, so at the capacity c half of all probes hold. The noise is normal
below the median and normal above it, with two unknown deviations, since noise that slows a run down often has the
longer tail. The model assumes that 4 % of the probes are strays with a much wider noise, so one bad probe moves the
answer little. A figure beyond twice the bound counts only as `at least twice`, and a figure below half of it as
`at most half`. If a probe has no figure, only its holding or failing counts.

The interval is that of the posterior of c over a grid of all unknowns. `python -m benchmarks coverage` prints how often
the interval contains a known capacity.

scipy has no normal distribution with different deviations below and above the median, so this module has its density.
The probabilities are scipy's `ndtr`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from exchange.estimates import TAIL, IntervalEstimate

FAR = 0.8
"""The largest logarithm of a ratio that counts by its size; it is a factor of about two."""
STRAY_SHARE = 0.04
"""The share of stray probes in the model."""
STRAY = NormalDist(0.0, 2.0)
"""The noise of stray probes: a wide normal distribution."""
# The grid of the unknowns has four axes: capacities, SLOPES, FLOORS, and combinations of a skew and a deviation.
SLOPES = np.geomspace(0.2, 40.0, 8, dtype=np.float32)[:, None, None]
FLOORS = -np.log(np.array([0.05, 0.3, 0.5, 0.65, 0.8], np.float32))[:, None]
"""A in the model, for figures of an idle system that are these parts of their bound."""
DEVIATIONS = np.geomspace(0.04, 1.0, 6)
SKEWS = np.array([0.4, 1.0, 2.5])
"""Ratios of the deviation above the median to the deviation below it."""
BELOW = np.outer(SKEWS**-0.5, DEVIATIONS).ravel().astype(np.float32)
ABOVE = np.outer(SKEWS**0.5, DEVIATIONS).ravel().astype(np.float32)
"""Deviations of the noise below and above its median, for each combination of a skew and a deviation."""
FLATNESS = 0.25
"""The prior of a slope b is b ** -FLATNESS. With equal priors the model would explain noise by steep slopes."""
STEP = 0.05
"""The difference of the logarithms of neighbouring capacities in the coarse grid."""
POINTS = 100
"""The number of capacities in the refined grid."""
NEGLIGIBLE = 0.0005
"""The share of the posterior that the refined grid leaves out at either end."""
STEEPEST = 20.0
"""The largest exponent of the model: it keeps `exp` from overflowing."""
ROOT_OF_TWO_PI = float(np.sqrt(2 * np.pi))

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True)
class ProbeOutcome:
    """A probe's outcome. `log_ratio` is the logarithm of figure / bound, None if there is no such figure."""

    rate_per_s: float
    holds: bool
    log_ratio: float | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest logarithm of the ratio that the outcome allows; both are equal if it is known.

        A figure that contradicts `holds` does not count: the probe failed for another reason.
        """
        log_ratio = self.log_ratio
        contradicts = log_ratio is not None and (log_ratio <= 0) != self.holds
        if log_ratio is None or contradicts:
            return (-np.inf, 0.0) if self.holds else (0.0, np.inf)
        if log_ratio < -FAR:
            return (-np.inf, -FAR)
        if log_ratio > FAR:
            return (FAR, np.inf)
        return (log_ratio, log_ratio)


class Posterior:
    """How likely each capacity between two rates is, given the outcomes so far."""

    def __init__(self, low_per_s: float, high_per_s: float, points: int | None = None) -> None:
        """`points` is the number of capacities in the grid; without it their logarithms are STEP apart."""
        low = log(low_per_s)
        high = log(high_per_s)
        if points is None:
            points = max(2, round((high - low) / STEP))
        self._edges = np.linspace(low, high, points + 1)
        self._capacities = ((self._edges[1:] + self._edges[:-1]) / 2)[:, None, None, None].astype(np.float32)
        self._log_weights: Floats = -FLATNESS * np.log(SLOPES[None])
        self.outcomes: list[ProbeOutcome] = []

    def add(self, outcomes: Sequence[ProbeOutcome]) -> Posterior:
        """Update the weights by further outcomes; returns self."""
        for outcome in outcomes:
            expected = self._expected(outcome.rate_per_s)
            low, high = outcome.bounds
            self._log_weights = self._log_weights + np.log(_likelihood(expected, low, high))
        self.outcomes += outcomes
        return self

    def refined(self) -> Posterior:
        """Return the posterior of the same outcomes on a grid of POINTS capacities, which leaves out unlikely ones.

        The first of two rounds keeps a margin, since the quantiles of the coarse grid are off by up to a step.
        """
        lowest = self._edges[0]
        highest = self._edges[-1]
        posterior: Posterior = self
        for margin in (1.5 * STEP, 0.0):
            low_per_s, high_per_s = posterior.quantiles([NEGLIGIBLE, 1 - NEGLIGIBLE])
            low = max(lowest, log(low_per_s) - margin)
            high = min(highest, log(high_per_s) + margin)
            posterior = Posterior(exp(low), exp(high), POINTS).add(self.outcomes)
        return posterior

    def _expected(self, rate_per_s: float) -> Floats:
        """Return the logarithm of figure / bound, without noise, at a rate, for each point of the grid."""
        exponent = SLOPES * (log(rate_per_s) - self._capacities) / FLOORS
        return np.asarray(FLOORS * np.expm1(np.minimum(exponent, STEEPEST)))

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return the rates below which these shares of the posterior lie."""
        weight_by_capacity = self._weights.sum(axis=(1, 2, 3))
        cumulated = np.concatenate([[0.0], np.cumsum(weight_by_capacity)])
        log_rates = np.interp(np.array(shares) * cumulated[-1], cumulated, self._edges)
        return [exp(log_rate) for log_rate in log_rates]

    @property
    def estimate(self) -> IntervalEstimate:
        """The capacity, and the interval that contains it with 95 % probability."""
        low, value, high = self.quantiles([TAIL, 0.5, 1 - TAIL])
        return IntervalEstimate(value, low, high)

    @property
    def _weights(self) -> Floats:
        """The weight of each point of the grid; the largest is 1."""
        shape = np.broadcast_shapes(self._log_weights.shape, self._capacities.shape)
        log_weights = np.broadcast_to(self._log_weights, shape)
        return np.asarray(np.exp(log_weights - log_weights.max()))

    def chance(self, rate_per_s: float) -> IntervalEstimate:
        """Return the chance that a probe at this rate holds, with its interval."""
        weights = self._weights
        # A probe holds if the noise is below the distance from the expected logarithm to the bound.
        chances = np.broadcast_to(_share_below(-self._expected(rate_per_s)), weights.shape).ravel()
        weights = weights.ravel()
        ascending = np.argsort(chances)
        cumulated = np.cumsum(weights[ascending])
        total = cumulated[-1]
        low, high = np.interp([TAIL * total, (1 - TAIL) * total], cumulated, chances[ascending])
        mean = np.average(chances, weights=weights)
        return IntervalEstimate(float(mean), float(low), float(high))


def _likelihood(expected: Floats, low: float, high: float) -> Floats:
    """Return the likelihood that the logarithm of the ratio is from `low` to `high`, for each point of the grid."""
    usual = _usual_likelihood(low - expected, high - expected)
    stray = _stray_likelihood(low, high)
    return np.asarray((1 - STRAY_SHARE) * usual + STRAY_SHARE * stray)


def _usual_likelihood(low: Floats, high: Floats) -> Floats:
    """Return the probability of noise from `low` to `high`; the density at `low` if `high` is equal to it.

    If the two differ, one of them is infinite.
    """
    if np.isneginf(low).all():
        return _share_below(high)
    if np.isposinf(high).all():
        return 1 - _share_below(low)
    deviation = np.where(low < 0, BELOW, ABOVE)
    return np.asarray(np.exp(-0.5 * (low / deviation) ** 2) / (deviation * ROOT_OF_TWO_PI))


def _share_below(noise: Floats) -> Floats:
    """Return the probability of noise below `noise`, for each combination of deviations."""
    from scipy.special import ndtr

    deviation = np.where(noise < 0, BELOW, ABOVE)
    return np.asarray(ndtr(noise / deviation))


def _stray_likelihood(low: float, high: float) -> float:
    """Return the same as `_usual_likelihood`, for the noise of stray probes."""
    if low == high:
        return STRAY.pdf(low)
    return STRAY.cdf(high) - STRAY.cdf(low)
