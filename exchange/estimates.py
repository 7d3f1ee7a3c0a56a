"""The median over repeats, with its 95 % bootstrap interval by the percentile method.

Such an interval assumes that repeats are independent. If the machine drifts while the repeats are made, the interval
holds the true median less often than in 95 % of cases, as docs/verdicts.md shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
RESAMPLES = 9_999
TAIL = (1 - CONFIDENCE) / 2
"""The share of the resamples on either side of the interval."""


@dataclass(frozen=True)
class IntervalEstimate:
    """A value with its interval; with one repeat there is no interval."""

    value: float
    low: float | None = None
    high: float | None = None


def median(values: Sequence[float], seed: int) -> IntervalEstimate:
    """Return the median of a figure over repeats, with its interval if there are two repeats or more.

    Equal seeds draw the same repeats for every figure, so the figures of one arm are resampled together.
    ModuleNotFoundError if an interval is wanted and scipy is not installed.
    """
    value = float(np.median(values))
    if len(values) < 2:
        return IntervalEstimate(value)

    from scipy import stats  # takes a second to import, and a plain run needs no interval

    resampled = stats.bootstrap(
        (values,),
        np.median,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    interval = resampled.confidence_interval
    return IntervalEstimate(value, float(interval.low), float(interval.high))
