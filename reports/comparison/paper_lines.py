"""Lines over the offered rate on linear axes, with whiskers of 95 %."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter

from reports.comparison.completion_figures import COLOURS, rate_of
from reports.drawing.canvas import empty_axes, linear_y
from reports.drawing.chart import Chart, Numbers
from reports.drawing.labelled_lines import EndLabel, label_ends
from reports.formats import axis_number

LEAST_GAP = 0.14  # of the axis, from one rate's number to the next

Record = dict[str, Any]


@dataclass(frozen=True)
class PaperLine:
    """A metric of some arms, of which each has measured it; in the order of their rates."""

    name: str
    colour: str
    metric: str
    arms: list[Record]

    @property
    def end(self) -> float:
        return float(self.arms[-1]["metrics"][self.metric]["median"])


def lines_of(arms: dict[str, list[Record]], metric: str, before: str = "") -> list[PaperLine]:
    """Of those that measured it; a name has its colour, whoever is left out."""
    measured = {name: sorted((a for a in own if metric in a["metrics"]), key=rate_of) for name, own in arms.items()}
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(arms)}
    return [PaperLine(before + name, colours[name], metric, own) for name, own in measured.items() if own]


def lines_against_rate(lines: list[PaperLine], axis: str, unit: str, labels: list[EndLabel]) -> Chart:
    axes = empty_axes(axis, "orders/s")
    for line in lines:
        _draw(axes, line)
    _linear_rates(axes, sorted({rate_of(arm) for line in lines for arm in line.arms}))
    linear_y(axes)
    label_ends(axes, labels)
    columns = ("series", "orders_per_s", *(f"{end}_{unit}" for end in ("median", "low", "high")))
    rows = [(line.name, rate_of(arm), *_ends(arm["metrics"][line.metric])) for line in lines for arm in line.arms]
    return Chart(axes, Numbers(columns, list(rows)))


def _draw(axes: Axes, line: PaperLine) -> None:
    """Hollow where the arm did not hold its rate."""
    x = np.array([rate_of(arm) for arm in line.arms])
    y, low, high = np.array([_ends(arm["metrics"][line.metric]) for arm in line.arms], np.float64).T
    spread = np.nan_to_num(np.abs(np.array([low, high]) - y))
    axes.errorbar(x, y, yerr=spread, color=line.colour, linewidth=1.4, elinewidth=1.4, capsize=3)
    for held, fill in ((True, line.colour), (False, "none")):
        chosen = np.array([arm["held"] is held for arm in line.arms])
        axes.plot(x[chosen], y[chosen], "o", color=line.colour, markersize=5, markerfacecolor=fill)


def _ends(estimate: Record) -> tuple[float, float | None, float | None]:
    return estimate["median"], estimate["low"], estimate["high"]


def _linear_rates(axes: Axes, rates: list[float]) -> None:
    """From zero; a number at every rate that leaves its neighbours room."""
    axes.set_xlim(0.0, rates[-1] * 1.04)
    shown = [0.0]
    for rate in reversed(rates):
        if all(abs(rate - other) >= LEAST_GAP * rates[-1] for other in shown):
            shown.append(rate)
    axes.xaxis.set_major_locator(FixedLocator(sorted(shown)))
    axes.xaxis.set_major_formatter(FuncFormatter(axis_number))
