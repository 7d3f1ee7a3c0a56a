"""Whether a difference between two arms is more than chance: a paired test, corrected for how many are made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy import stats

ALPHA = 0.05
"""The chance, over all rows of a comparison together, to see a difference where there is none."""
MOST_REPEATS_TRIED = 100


def paired_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Wilcoxon's signed-rank test on the log ratios, repeat by repeat, two-sided; equal pairs count for neither."""
    logs = np.log(np.asarray(first, np.float64)) - np.log(np.asarray(second, np.float64))
    if not logs.any():
        return 1.0
    return float(stats.wilcoxon(logs, zero_method="pratt").pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p-value adjusted by Holm's step-down method, to be held against ALPHA."""
    upwards = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, row in enumerate(upwards):
        highest = max(highest, min(1.0, p_values[row] * (len(p_values) - rank)))
        adjusted[row] = highest
    return adjusted


@cache
def smallest_p(repeats: int) -> float:
    """What the test says where every repeat agrees."""
    return float(stats.wilcoxon(np.arange(1.0, repeats + 1)).pvalue)


def repeats_needed(rows: int) -> int:
    """The fewest repeats of which a verdict can come, where so many rows are tested."""
    enough = (n for n in range(2, MOST_REPEATS_TRIED) if smallest_p(n) * rows < ALPHA)
    return next(enough, MOST_REPEATS_TRIED)


def share_lower(first: Sequence[float], second: Sequence[float]) -> float:
    """Effect size: the share of repeats in which the first was the lower; an equal pair counts half."""
    pairs = list(zip(first, second, strict=True))
    return sum((a < b) + 0.5 * (a == b) for a, b in pairs) / len(pairs)
