"""CPU by component, a figure for each transport."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from experiments.compare.completion_figures import rate_of
from experiments.page.canvas import empty_axes, linear_y
from experiments.page.formats import axis_number
from experiments.page.labelled_lines import EndLabel, label_ends
from experiments.page.load_figures import COMPONENT_COLOURS
from experiments.trials.metrics import COMPONENTS

BAR_WIDTH = 0.62  # of the distance between two rates

Record = dict[str, Any]


def stacked_by_contender(arms: list[Record]) -> dict[str, Axes]:
    """All to one scale."""
    contenders = list(dict.fromkeys(arm["contender"] for arm in arms))
    drawn = {name: _stacked([arm for arm in arms if arm["contender"] == name]) for name in contenders}
    highest = max(axes.get_ylim()[1] for axes in drawn.values())
    for axes in drawn.values():
        axes.set_ylim(0.0, highest)
        _finish(axes)
    return drawn


def _stacked(arms: list[Record]) -> Axes:
    """A bar for each rate, of a part for each component."""
    axes = empty_axes("CPU s per million orders", "orders/s")
    arms = sorted(arms, key=rate_of)
    foot = np.zeros(len(arms))
    for name in COMPONENTS:
        heights = np.array([arm["metrics"].get(f"{name}_cpu_s_per_million", {}).get("median", 0.0) for arm in arms])
        if heights.any():
            axes.bar(range(len(arms)), heights, BAR_WIDTH, bottom=foot, color=COMPONENT_COLOURS[name], label=name)
        foot += heights
    axes.set_xticks(range(len(arms)), [axis_number(rate_of(arm)) for arm in arms])
    return axes


def _finish(axes: Axes) -> None:
    """Each component named beside its part of the last bar."""
    linear_y(axes)
    labels = []
    for bars in axes.containers:
        last = bars[-1]
        labels.append(EndLabel(last.get_y() + last.get_height() / 2, str(bars.get_label()), last.get_facecolor()))
    label_ends(axes, labels)
