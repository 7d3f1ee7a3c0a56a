"""Whether a figure grows over a long run: the test of Mann and Kendall, and the slope of Theil and Sen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEVEL = 0.01
"""A figure that does not grow is taken for one that grows in one of a hundred runs."""
LEAST_GROWTH = 0.05
"""Growth over the run, as a share of the figure, below which nothing is said."""


@dataclass(frozen=True)
class Growth:
    """The growth of a figure from the first value to the last."""

    share: float
    """By the median of all slopes between two values, as a share of the median value."""
    p: float
    """Chance of such an order of values, or a clearer one, if the figure does not grow."""

    @property
    def is_certain(self) -> bool:
        return self.p < LEVEL and self.share >= LEAST_GROWTH


def growth_of(values: Sequence[float]) -> Growth:
    """Return the growth of equally spaced values, of which there are three or more.

    ModuleNotFoundError if scipy is not installed.
    """
    from scipy import stats  # takes a second to import, and only long runs need it

    if len(set(values)) == 1:
        return Growth(share=0.0, p=1.0)
    places = np.arange(len(values))
    slope = stats.theilslopes(values, places).slope
    growth = float(slope) * (len(values) - 1)
    order = stats.kendalltau(places, values, alternative="greater")
    return Growth(share=growth / float(np.median(values)), p=float(order.pvalue))
