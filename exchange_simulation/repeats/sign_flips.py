"""Ratios of many rows, each with an interval and a p-value of one test over all rows together.

A row has the log ratios of two arms by one metric, one ratio for each repeat. If the arms are equal, each ratio could
as well have the other sign, so flipping the signs of whole repeats shows what chance alone does. `T` is a row's
Hodges-Lehmann estimate divided by its scale. Each flip has a largest T over all rows. A row differs if its T exceeds
nearly all of these largest T (max-T, step-down). A row's interval holds the ratios that the same test does not reject:
the estimate, plus or minus T's limit times the scale.

scipy has neither this test nor the Hodges-Lehmann estimate: its `permutation_test` flips the signs of one row, and has
no largest T of a family, no steps down, and no scales that rows share.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ENUMERATED_UP_TO = 12
"""With at most this many repeats, every way to flip them is tried; with more repeats, FLIPS random ways are tried."""
FLIPS = 2_048
CLIPPED_AT = 3.0
"""Ratios beyond this many robust standard deviations from their row's estimate are clipped to that distance."""
MAD_TO_DEVIATION = 1.4826
"""The standard deviation of normal values, divided by their median absolute deviation."""
SHARED_VARIANCE = 0.5
"""The share of a row's variance that comes from the other rows of its group, if the group is large."""
CAUTION = 0.8
"""Flips are judged at this share of the level, since scales are estimated: a test at 4 % errs in at most 5 %."""
RESOLUTION = float(np.log(2) / 128)
"""The width of a log bucket: percentiles show no smaller spread."""
LEAST_SCALE = 1e-6
"""Keeps T finite for a row without any spread."""
ALL_PAIRS_UP_TO = 40
"""With more repeats, the Hodges-Lehmann estimate averages each with its next 20 only, in place of all others."""

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LogRatio:
    """A row's estimate, in logs."""

    estimate: float
    half_width: float
    """Half the width of the interval around the estimate."""
    p: float
    """The row's p if it were tested alone."""
    p_corrected: float
    """The row's p, corrected for all rows of the family."""
    differs: bool


def estimate_together(
    rows: Sequence[Sequence[float]], groups: Sequence[Hashable], alpha: float, seed: int
) -> list[LogRatio]:
    """The rows' estimates; a value is NaN if a repeat did not measure the row.

    `groups`: the group (a metric) of each row. Rows of one group have about the same spread, so their scales are
    estimated together (SHARED_VARIANCE). A row that has fewer than `repeats_needed` values cannot differ.
    """
    if not rows:
        return []
    return _Family(np.asarray(rows, np.float64), groups, seed).log_ratios(CAUTION * alpha)


def repeats_needed(alpha: float) -> int:
    """The fewest repeats that allow a verdict: n repeats can be flipped in 2 ** (n - 1) ways, up to the sign."""
    return next(repeats for repeats in count(2) if 2.0 ** (1 - repeats) <= CAUTION * alpha)


def hodges_lehmann(values: Floats) -> Floats:
    """The median of the averages of all pairs, along the last axis."""
    first, second = _pairs(values.shape[-1])
    return _median((values[..., first] + values[..., second]) / 2)


def _median(values: Floats) -> Floats:
    """The median along the last axis, which is not empty and has no NaN. Sorting is faster than np.median here."""
    ascending = np.sort(values, axis=-1)
    size = values.shape[-1]
    below_middle = ascending[..., (size - 1) // 2]
    above_middle = ascending[..., size // 2]
    return np.asarray((below_middle + above_middle) / 2, np.float64)


@lru_cache(maxsize=8)
def _pairs(size: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The places of both members of each pair that the Hodges-Lehmann estimate averages; a value pairs with itself."""
    if size <= ALL_PAIRS_UP_TO:
        return np.triu_indices(size)
    distances = np.arange(ALL_PAIRS_UP_TO // 2 + 1)
    first = np.repeat(np.arange(size), len(distances))
    second = (first + np.tile(distances, size)) % size
    return first, second


@lru_cache(maxsize=4)
def sign_flips(repeats: int, seed: int) -> Floats:
    """A row of signs for each way to flip; the first way flips nothing.

    Opposite ways have equal T, so of two opposite ways only that with a plus for the first repeat is returned.
    """
    if repeats <= ENUMERATED_UP_TO:
        ways = np.arange(2 ** (repeats - 1))
        bits = (ways[:, None] >> np.arange(repeats - 1)) & 1
        signs = 1.0 - 2.0 * bits
        return np.hstack([np.ones((len(ways), 1)), signs])
    flips = np.random.default_rng(seed).choice([-1.0, 1.0], (FLIPS, repeats))
    flips[0] = 1.0
    return flips


class _FlippedStatistics(NamedTuple):
    """The statistics of each row of the trial (a column here) under each flip (a row here)."""

    estimates: Floats
    spreads: Floats


class _Family:
    """All rows of a trial, which are tested together."""

    def __init__(self, rows: Floats, groups: Sequence[Hashable], seed: int) -> None:
        self._flips = sign_flips(rows.shape[1], seed)
        self._group_masks = [np.array([group == name for group in groups]) for name in dict.fromkeys(groups)]
        self._variance_shares = np.array([SHARED_VARIANCE * (1 - 1 / mask.sum()) for mask in self._group_masks])
        self._rows = self._clipped(rows)
        self._estimate, spread = _estimate_and_spread(self._rows)
        self._scale = self._scales(spread)
        self._t = np.abs(self._estimate) / self._scale

    def log_ratios(self, alpha: float) -> list[LogRatio]:
        """The result of each row, tested at the level `alpha`."""
        chance = self._flipped(self._rows)
        own_p = _share_at_least(self._t_of(chance), self._t)
        p, rejected, limit = self._step_down(chance, alpha)
        limit, largest = self._limit(chance, rejected, limit, alpha)
        differs = rejected & (self._t > limit)
        p_of_largest = np.maximum(p, _share_at_least(largest[:, None], self._t))
        p = np.where(rejected & ~differs, p_of_largest, p)
        p_corrected = np.minimum(p / CAUTION, 1.0)
        half_width = limit * self._scale
        return [
            LogRatio(
                estimate=float(self._estimate[row]),
                half_width=float(half_width[row]),
                p=float(own_p[row]),
                p_corrected=float(p_corrected[row]),
                differs=bool(differs[row]),
            )
            for row in range(len(self._rows))
        ]

    def _step_down(self, chance: _FlippedStatistics, alpha: float) -> tuple[Floats, Mask, float]:
        """Return (the p of each row in the family, whether the row differs, the limit of T for rows that do not).

        A row that differs no longer raises the limit of the others.
        """
        differs = np.zeros(len(self._t), bool)
        p = np.zeros(len(self._t))
        while not differs.all():
            largest = self._t_of(chance)[:, ~differs].max(axis=1, keepdims=True)
            p[~differs] = np.maximum(_share_at_least(largest, self._t[~differs]), p[differs].max(initial=0.0))
            newly_different = ~differs & (p <= alpha)
            if not newly_different.any():
                return p, differs, _exceeded_by(largest[:, 0], alpha)
            differs |= newly_different
            self._centre(chance, newly_different, np.zeros(len(self._t)))
        return p, differs, 0.0

    def _limit(self, chance: _FlippedStatistics, differs: Mask, limit: float, alpha: float) -> tuple[float, Floats]:
        """Return (the T that chance alone exceeds in a share alpha of the flips, the largest T of each flip).

        Each row is flipped about a ratio that its data allow: 1 if its arms may be equal, else the end of its interval.
        The end depends on the limit, so both are found by iteration.
        """
        largest = self._t_of(chance).max(axis=1)
        iterations = 2 if differs.any() else 0
        for _ in range(iterations):
            end = max(limit, _exceeded_by(largest, alpha)) * self._scale
            self._centre(chance, differs, end * np.sign(self._estimate))
            largest = self._t_of(chance).max(axis=1)
        return max(limit, _exceeded_by(largest, alpha)), largest

    def _centre(self, chance: _FlippedStatistics, chosen: Mask, offsets: Floats) -> None:
        """Flip the chosen rows about their estimate minus the offset, in place of 1; changes `chance`."""
        moved = self._rows - (self._estimate - offsets)[:, None]
        flipped = self._flipped(moved[chosen])
        chance.estimates[:, chosen] = flipped.estimates
        chance.spreads[:, chosen] = flipped.spreads

    def _flipped(self, rows: Floats) -> _FlippedStatistics:
        """The statistics of the rows under every flip."""
        estimates = np.empty((len(self._flips), len(rows)))
        spreads = np.empty((len(self._flips), len(rows)))
        for place, row in enumerate(rows):
            measured = np.isfinite(row)
            estimates[:, place], spreads[:, place] = _estimate_and_spread(self._flips[:, measured] * row[measured])
        return _FlippedStatistics(estimates, spreads)

    def _t_of(self, chance: _FlippedStatistics) -> Floats:
        return np.asarray(np.abs(chance.estimates) / self._scales(chance.spreads), np.float64)

    def _scales(self, spreads: Floats) -> Floats:
        """The rows' scales: about half of a row's variance is the median variance of its group."""
        variances = spreads**2
        for mask, share in zip(self._group_masks, self._variance_shares, strict=True):
            group_variances = variances[..., mask]
            group_median = _median(group_variances)[..., None]
            variances[..., mask] = (1 - share) * group_variances + share * group_median
        return np.maximum(np.sqrt(variances), LEAST_SCALE)

    def _clipped(self, rows: Floats) -> Floats:
        """The rows, with outliers moved to CLIPPED_AT deviations from their row's estimate."""
        middle = np.array([hodges_lehmann(row[np.isfinite(row)]) for row in rows])[:, None]
        deviations = MAD_TO_DEVIATION * np.nanmedian(np.abs(rows - middle), axis=1)
        reach = CLIPPED_AT * self._scales(np.maximum(deviations, RESOLUTION))[:, None]
        return np.clip(rows, middle - reach, middle + reach)


def _estimate_and_spread(rows: Floats) -> tuple[Floats, Floats]:
    """The Hodges-Lehmann estimate, and the standard deviation from it, along the last axis."""
    if np.isnan(rows).any():
        statistics = [_estimate_and_spread(row[np.isfinite(row)]) for row in rows]
        estimates = np.array([estimate for estimate, _ in statistics])
        spreads = np.array([spread for _, spread in statistics])
        return estimates, spreads
    estimate = hodges_lehmann(rows)
    squares = (rows - estimate[..., None]) ** 2
    return estimate, np.sqrt(squares.sum(axis=-1) / (rows.shape[-1] - 1))


def _share_at_least(flipped_t: Floats, t: Floats) -> Floats:
    """For each T, the share of flips with an equal or larger T."""
    lowered_t = t * (1 - 1e-9)  # equal T may differ by rounding
    return np.asarray((flipped_t >= lowered_t).mean(axis=0), np.float64)


def _exceeded_by(flipped_t: Floats, alpha: float) -> float:
    """The smallest T that at most a share alpha of the flips exceeds."""
    descending = np.sort(flipped_t)[::-1]
    return float(descending[int(alpha * len(flipped_t))])
