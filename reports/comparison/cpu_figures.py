"""CPU by component, a figure for each transport."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from reports.comparison.completion_figures import rate_of
from reports.drawing.canvas import empty_axes, linear_y
from reports.drawing.chart import Chart, Numbers
from reports.drawing.labelled_lines import EndLabel, label_ends
from reports.formats import axis_number
from reports.run.load_figures import COMPONENT_COLOURS
from runs.metrics import COMPONENTS

BAR_WIDTH = 0.62  # of the distance between two rates

Record = dict[str, Any]


def stacked_by_contender(arms: list[Record]) -> dict[str, Chart]:
    """All to one scale."""
    contenders = list(dict.fromkeys(arm["contender"] for arm in arms))
    drawn = {name: _stacked([arm for arm in arms if arm["contender"] == name]) for name in contenders}
    highest = max(chart.axes.get_ylim()[1] for chart in drawn.values())
    for chart in drawn.values():
        chart.axes.set_ylim(0.0, highest)
        _finish(chart.axes)
    return drawn


def _stacked(arms: list[Record]) -> Chart:
    """A bar for each rate, of a part for each component."""
    axes = empty_axes("CPU s per million orders", "orders/s")
    arms = sorted(arms, key=rate_of)
    parts = {name: [_cpu_s(arm, name) for arm in arms] for name in COMPONENTS}
    shown = {name: heights for name, heights in parts.items() if any(heights)}
    foot = np.zeros(len(arms))
    for name, heights in shown.items():
        axes.bar(range(len(arms)), heights, BAR_WIDTH, bottom=foot, color=COMPONENT_COLOURS[name], label=name)
        foot += heights
    axes.set_xticks(range(len(arms)), [axis_number(rate_of(arm)) for arm in arms])
    rows = [(n, rate_of(arm), h) for n, heights in shown.items() for arm, h in zip(arms, heights, strict=True) if h]
    return Chart(axes, Numbers(("series", "orders_per_s", "cpu_s_per_million"), list(rows)))


def _cpu_s(arm: Record, component: str) -> float:
    return float(arm["metrics"].get(f"{component}_cpu_s_per_million", {}).get("median", 0.0))


def _finish(axes: Axes) -> None:
    """Each component named beside its part of the last bar."""
    linear_y(axes)
    labels = []
    for bars in axes.containers:
        last = bars[-1]
        labels.append(EndLabel(last.get_y() + last.get_height() / 2, str(bars.get_label()), last.get_facecolor()))
    label_ends(axes, labels)
