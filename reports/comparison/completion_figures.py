"""Completion time against the offered rate, a line for each transport; a whisker is a 95 % interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from reports.drawing.canvas import empty_axes, log_y
from reports.drawing.chart import Chart, Numbers
from reports.drawing.colours import BLUE, GREEN, MUTED, ORANGE, PURPLE
from reports.drawing.labelled_lines import EndLabel, label_ends
from reports.formats import axis_number

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, MUTED)
DODGE = 0.02  # of a rate, between two transports' whiskers
MOST_TICKS = 6

Record = dict[str, Any]


def against_rate(arms: list[Record], metric: str) -> Chart:
    axes = empty_axes("µs", "orders/s")
    contenders = list(dict.fromkeys(arm["contender"] for arm in arms))
    labels = []
    for place, contender in enumerate(contenders):
        own = [arm for arm in arms if arm["contender"] == contender and metric in arm["metrics"]]
        if own:
            dodge = 1 + DODGE * (place - (len(contenders) - 1) / 2)
            labels.append(_line(axes, own, metric, COLOURS[place % len(COLOURS)], dodge))
    _rate_x(axes, arms)
    log_y(axes)
    label_ends(axes, labels)
    return Chart(axes, by_contender(arms, metric, "us"))


def by_contender(arms: list[Record], metric: str, unit: str) -> Numbers:
    """A median with the ends of its interval for each arm."""
    columns = ("series", "orders_per_s", f"median_{unit}", f"low_{unit}", f"high_{unit}")
    measured = [(arm, arm["metrics"][metric]) for arm in arms if metric in arm["metrics"]]
    return Numbers(columns, [(a["contender"], rate_of(a), e["median"], e["low"], e["high"]) for a, e in measured])


def _line(axes: Axes, arms: list[Record], metric: str, colour: str, dodge: float) -> EndLabel:
    """Medians with whiskers, a little aside of the others'; hollow where the arm did not hold its rate."""
    arms = sorted(arms, key=rate_of)
    found = [arm["metrics"][metric] for arm in arms]
    x = np.array([rate_of(arm) for arm in arms]) * dodge
    y = np.array([estimate["median"] for estimate in found])
    ends = np.array([[e["median"] if e[end] is None else e[end] for e in found] for end in ("low", "high")])
    axes.errorbar(x, y, yerr=np.abs(ends - y), color=colour, linewidth=1.4, elinewidth=1.4, capsize=3)
    for held, fill in ((True, colour), (False, "none")):
        chosen = np.array([arm["held"] is held for arm in arms])
        axes.plot(x[chosen], y[chosen], "o", color=colour, markersize=6, markerfacecolor=fill)
    return EndLabel(float(y[-1]), arms[-1]["contender"], colour)


def by(arms: list[Record], name_of: Callable[[Record], str]) -> dict[str, list[Record]]:
    """The arms of each name, both in the order in which they come."""
    named: dict[str, list[Record]] = {}
    for arm in arms:
        named.setdefault(name_of(arm), []).append(arm)
    return named


def rate_of(arm: Record) -> float:
    return float(arm["settings"]["orders_per_s"])


def _rate_x(axes: Axes, arms: list[Record]) -> None:
    """A log axis with a mark at every rate that was offered, as far as there is room for its number."""
    rates = sorted({rate_of(arm) for arm in arms})
    axes.set_xscale("log")
    axes.set_xlim(rates[0] / 1.15, rates[-1] * 1.15)
    axes.xaxis.set_major_locator(FixedLocator(_with_room(rates)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(axis_number))


def _with_room(rates: list[float]) -> list[float]:
    """Rates far enough from each other for their numbers."""
    least = (rates[-1] / rates[0]) ** (1 / MOST_TICKS)
    chosen = rates[:1]
    for rate in rates[1:]:
        if rate >= 0.999 * least * chosen[-1]:
            chosen.append(rate)
    return chosen
