"""Estimates over repeats: a median, or a ratio of medians, with its 95 % bootstrap interval.

The percentile method, not BCa: BCa's acceleration comes from a jackknife, which is inconsistent for a median, and in
simulations of 5 to 20 repeats its intervals for a ratio of medians contained the true ratio less often than these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
RESAMPLES = 9_999
TAIL = (1 - CONFIDENCE) / 2
"""The share of the resamples on either side of the interval."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; with one repeat there is no interval."""

    value: float
    low: float | None = None
    high: float | None = None


def median(values: Sequence[float], seed: int) -> Estimate:
    """The median of a figure over repeats."""
    sample = np.asarray(values, np.float64)
    if len(sample) < 2:
        return Estimate(float(np.median(sample)))
    return _estimate(float(np.median(sample)), medians_of_resamples(sample, seed))


def ratio_of_medians(first: Sequence[float], second: Sequence[float], seed: int) -> Estimate:
    """Median of first / median of second. Values at the same index are of one repeat, and resampled together."""
    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    ratio = float(np.median(one) / np.median(other))
    if len(one) < 2:
        return Estimate(ratio)
    return _estimate(ratio, medians_of_resamples(one, seed) / medians_of_resamples(other, seed))


def _estimate(value: float, resampled: Floats) -> Estimate:
    from scipy import stats  # half a second to import, which one repeat does not need

    low, high = stats.quantile(resampled, [TAIL, 1 - TAIL])
    return Estimate(value, float(low), float(high))


def medians_of_resamples(sample: Floats, seed: int) -> Floats:
    """The same medians as scipy.stats.bootstrap, bit for bit, 30 times faster, since ranks sort faster."""
    upwards = np.argsort(sample, kind="stable")
    ranks = np.empty(len(sample), np.uint16)
    ranks[upwards] = np.arange(len(sample))
    drawn = np.sort(ranks[_resamples(len(sample), seed)], axis=1)
    lower, upper = drawn[:, (len(sample) - 1) // 2], drawn[:, len(sample) // 2]
    return np.asarray((sample[upwards[lower]] + sample[upwards[upper]]) / 2, np.float64)


@lru_cache(maxsize=4)
def _resamples(size: int, seed: int) -> npt.NDArray[np.uint16]:
    """The repeats of each resample: the same for every metric, since a repeat measures them all."""
    drawn = np.random.default_rng(seed).integers(0, size, (RESAMPLES, size))
    return drawn.astype(np.uint16)
