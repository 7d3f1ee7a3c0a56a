"""The dose-response curve of a capacity: how the chance of holding an objective falls with the rate.

This module knows nothing of an exchange.

With y, the logarithm of a probe's figure over its bound, and x, the logarithm of its rate, the model is

    y = A (exp(b (x - c) / A) - 1) + noise        c the capacity, b the slope there, -A the floor of an idle system

A probe holds if y <= 0, so at the capacity c half of all probes hold: the noise has the median 0. On either side of
that it is normal with an unknown deviation, since noise that slows runs down often has the longer tail. Four of a
hundred probes may have any noise at all, so one bad probe moves the answer little. Beyond a factor of two on either
side of the bound a probe counts only as `at least` or `at most` that much. If a probe has no figure, only whether it
held counts. The interval is that of the posterior of c over a grid of all unknowns; `python -m benchmarks coverage`
prints how often it contains a known capacity.

scipy has no normal distribution with a deviation of its own on either side, so the density stands here; probabilities
are scipy's `ndtr`.
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
"""The logarithm of a ratio beyond which its size does not count: a factor of two."""
STRAY_SHARE = 0.04
"""The share of stray probes, whose noise may be anything."""
STRAY = NormalDist(0.0, 2.0)
"""The noise of stray probes."""
SLOPES = np.geomspace(0.2, 40.0, 8, dtype=np.float32)[:, None, None]
FLOORS = -np.log(np.array([0.05, 0.3, 0.5, 0.65, 0.8], np.float32))[:, None]
DEVIATIONS = np.geomspace(0.04, 1.0, 6)
SKEWS = np.array([0.4, 1.0, 2.5])
"""The noise's deviation above its median over that below it."""
BELOW, ABOVE = (np.outer(SKEWS**power, DEVIATIONS).ravel().astype(np.float32) for power in (-0.5, 0.5))
"""The grid of the unknowns beside the capacity: slope and floor in an axis of their own, both deviations in one."""
FLATNESS = 0.25
"""The prior of a slope b is b ** -FLATNESS. With equal priors, noise would pass for steepness."""
STEP = 0.05
"""The logarithm of a step between two capacities of the first grid."""
POINTS = 100
"""Capacities of the grid for the answer."""
NEGLIGIBLE = 0.0005
"""The share of the posterior that the answer's grid leaves out on either side."""
STEEPEST = 20.0
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
        """The lowest and the highest logarithm of the ratio that the outcome allows; equal if it is known."""
        y = self.log_ratio
        is_known = y is not None and self.holds is (y <= 0)
        if y is None or not is_known:
            return (-np.inf, 0.0) if self.holds else (0.0, np.inf)
        if y < -FAR:
            return (-np.inf, -FAR)
        if y > FAR:
            return (FAR, np.inf)
        return y, y


class Posterior:
    """How likely each capacity between two rates is, given the outcomes so far."""

    def __init__(self, low_per_s: float, high_per_s: float, points: int | None = None) -> None:
        """`points` is the number of capacities in the grid; without it they are STEP apart."""
        low, high = log(low_per_s), log(high_per_s)
        if points is None:
            points = max(2, round((high - low) / STEP))
        self._edges = np.linspace(low, high, points + 1)
        self._capacities = ((self._edges[1:] + self._edges[:-1]) / 2)[:, None, None, None].astype(np.float32)
        self._log_weights: Floats = -FLATNESS * np.log(SLOPES[None])
        self.outcomes: list[ProbeOutcome] = []

    def add(self, outcomes: Sequence[ProbeOutcome]) -> Posterior:
        """Take further outcomes in; returns itself."""
        for outcome in outcomes:
            expected = self._expected(outcome.rate_per_s)
            self._log_weights = self._log_weights + np.log(_likelihood(expected, *outcome.bounds))
        self.outcomes += outcomes
        return self

    def refined(self) -> Posterior:
        """Return the posterior of the same outcomes on a grid as fine as its width needs."""
        lowest, highest = self._edges[0], self._edges[-1]
        posterior: Posterior = self
        for margin in (1.5 * STEP, 0.0):
            low_per_s, high_per_s = posterior.quantiles([NEGLIGIBLE, 1 - NEGLIGIBLE])
            low = max(lowest, log(low_per_s) - margin)
            high = min(highest, log(high_per_s) + margin)
            posterior = Posterior(exp(low), exp(high), POINTS).add(self.outcomes)
        return posterior

    def _expected(self, rate_per_s: float) -> Floats:
        """Return the logarithm of figure / bound, without noise, at a rate, for each point of the grid."""
        rise = SLOPES * (log(rate_per_s) - self._capacities) / FLOORS
        return np.asarray(FLOORS * np.expm1(np.minimum(rise, STEEPEST)))

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return the rates below which these shares of the posterior lie."""
        cumulated = np.concatenate([[0.0], np.cumsum(self._weights.sum(axis=(1, 2, 3)))])
        return [exp(x) for x in np.interp(np.array(shares) * cumulated[-1], cumulated, self._edges)]

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
        chances = np.broadcast_to(_share_below(-self._expected(rate_per_s)), self._weights.shape).ravel()
        weights = self._weights.ravel()
        upwards = np.argsort(chances)
        cumulated = np.cumsum(weights[upwards])
        low, high = np.interp([TAIL * cumulated[-1], (1 - TAIL) * cumulated[-1]], cumulated, chances[upwards])
        return IntervalEstimate(float(np.average(chances, weights=weights)), float(low), float(high))


def _likelihood(expected: Floats, low: float, high: float) -> Floats:
    """Return the likelihood of a logarithm from `low` to `high`, for each expected one and each deviation."""
    usual = _noise(low - expected, high - expected)
    stray = _stray(low, high)
    return np.asarray((1 - STRAY_SHARE) * usual + STRAY_SHARE * stray)


def _noise(low: Floats, high: Floats) -> Floats:
    """Return the noise's density at `low` if `high` is equal to it, else the probability between the two.

    If the two differ, one of them is infinite.
    """
    if np.isneginf(low).all():
        return _share_below(high)
    if np.isposinf(high).all():
        return 1 - _share_below(low)
    deviation = np.where(low < 0, BELOW, ABOVE)
    return np.asarray(np.exp(-0.5 * (low / deviation) ** 2) / (deviation * ROOT_OF_TWO_PI))


def _share_below(noise: Floats) -> Floats:
    """Return the probability of less noise."""
    from scipy.special import ndtr

    return np.asarray(ndtr(noise / np.where(noise < 0, BELOW, ABOVE)))


def _stray(low: float, high: float) -> float:
    """Return the density or probability of stray probes, as `_noise` does for others."""
    if low == high:
        return STRAY.pdf(low)
    return STRAY.cdf(high) - STRAY.cdf(low)
