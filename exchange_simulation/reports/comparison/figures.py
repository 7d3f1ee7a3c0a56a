"""The figures of a comparison: completion time against the offered rate, and CPU by component.

Completion time has a line for each contender; a whisker is the middle half of the repeats. CPU has a figure for each
contender.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from matplotlib.axes import Axes

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange_simulation.launching.metrics import COMPONENTS
from exchange_simulation.reports.comparison.answer import NAGLE
from exchange_simulation.reports.comparison.sentences import beside_the_rate, cpu_metric
from exchange_simulation.reports.drawing.canvas import empty_axes, linear_y, log_x, log_y
from exchange_simulation.reports.drawing.chart import (
    Cell,
    Chart,
    EndLabel,
    Numbers,
    draw_medians,
    label_ends,
    name_parts,
)
from exchange_simulation.reports.drawing.colours import ROLE_COLOURS, line_colours
from exchange_simulation.reports.drawing.figures import Figure
from exchange_simulation.reports.formats.estimates import middle_half_ends
from exchange_simulation.reports.formats.few_orders import has_enough_orders
from exchange_simulation.reports.formats.numbers import axis_number

DRAWN = {NAGLE: ("mean", "p50")}
"""Completion times from due that a study's page draws against rate; all others draw USUALLY_DRAWN."""
USUALLY_DRAWN = ("p50", "p99")
COMPLETION = "Medians over repeats; whiskers are the middle half of the repeats. Hollow: the rate was not held."
CPU = "Medians over repeats; all transports to one scale."
DODGE = 0.02  # share of a rate by which two contenders' whiskers are apart
LEAST_POINTS = 4
"""A drawing of three points says less than their three numbers in the table."""
BAR_WIDTH = 0.62  # of the distance between two rates


def trial_figures(record: Record) -> Iterator[Figure]:
    """Yield the figures that have LEAST_POINTS to show; the style of page or files must be set.

    Arms that run as fast as possible have no rate, so they have no place on the axis.
    """
    arms = with_rate(record)
    drawn = DRAWN.get(record["study"], USUALLY_DRAWN)
    if not arms:
        return
    if record["study"] == NAGLE:
        for transport, of_transport in grouped(arms, lambda arm: arm["settings"]["transport"]).items():
            for name in drawn:
                yield from _completion(of_transport, name, f", {transport}")
        return
    for factors, alike in grouped(arms, beside_the_rate).items():
        for name in drawn:
            yield from _completion(alike, name, factors)
        if len(alike) >= LEAST_POINTS:
            for contender, chart in _cpu_by_contender(alike).items():
                yield Figure(f"CPU, {contender}{factors}", chart, CPU)


def with_rate(record: Record) -> list[Record]:
    """Return the arms that were offered a rate, and measured something."""
    return [arm for arm in record["arms"] if arm["settings"]["orders_per_s"] is not None and arm["metrics"]]


def rate_of(arm: Record) -> float:
    return float(arm["settings"]["orders_per_s"])


def contender_of(arm: Record) -> str:
    return str(arm["contender"])


def contender_colours(contenders: Mapping[str, list[Record]]) -> dict[str, str]:
    """Return a colour for each contender, by its arms' transport."""
    return line_colours({name: arms[0]["settings"]["transport"] for name, arms in contenders.items()})


def _completion(arms: list[Record], name: str, words: str) -> Iterator[Figure]:
    """Yield one figure, or none if too few arms measured this percentile; an arm with too few orders for it did not."""
    metric = f"due_{name}_us"
    arms = [arm for arm in arms if has_enough_orders(name, arm.get("orders_measured"))]
    if sum(metric in arm["metrics"] for arm in arms) >= LEAST_POINTS:
        yield Figure(f"Completion time from due, {name}{words}", _against_rate(arms, metric), COMPLETION)


def _against_rate(arms: list[Record], metric: str) -> Chart:
    axes = empty_axes("µs", "orders/s")
    contenders = grouped(arms, contender_of)
    colours = contender_colours(contenders)
    labels = []
    for place, (name, of_contender) in enumerate(contenders.items()):
        measured = [arm for arm in of_contender if metric in arm["metrics"]]
        if measured:
            dodge = 1 + DODGE * (place - (len(contenders) - 1) / 2)
            labels.append(draw_arms(axes, name, sorted(measured, key=rate_of), metric, colours[name], dodge))
    log_x(axes, sorted({rate_of(arm) for arm in arms}))
    log_y(axes)
    label_ends(axes, labels)
    numbers = numbers_of_arms(((contender_of(arm), metric, arm) for arm in arms), "us")
    return Chart(axes, numbers, hover=numbers)


def numbers_of_arms(points: Iterable[tuple[str, str, Record]], unit: str) -> Numbers:
    """Return a row for each (line's name, metric, arm) that was measured: rate, median, ends of the middle half."""
    columns = ("series", "orders_per_s", f"median_{unit}", f"low_{unit}", f"high_{unit}")
    rows: list[tuple[Cell, ...]] = []
    for name, metric, arm in points:
        estimate = arm["metrics"].get(metric)
        if estimate:
            rows.append((name, rate_of(arm), estimate["median"], *middle_half_ends(estimate)))
    return Numbers(columns, rows)


def draw_arms(axes: Axes, name: str, arms: list[Record], metric: str, colour: str, dodge: float = 1.0) -> EndLabel:
    """Draw the medians of arms against their rates; `dodge` moves their whiskers beside those of other lines."""
    x = np.array([rate_of(arm) for arm in arms]) * dodge
    measured = [arm["metrics"][metric] for arm in arms]
    estimates = [(estimate["median"], *middle_half_ends(estimate)) for estimate in measured]
    return draw_medians(axes, x, estimates, name, colour, full=[arm["held"] for arm in arms])


def _cpu_by_contender(arms: list[Record]) -> dict[str, Chart]:
    """Return a chart for each contender, all to one scale."""
    drawn = {name: _stacked(of_contender) for name, of_contender in grouped(arms, contender_of).items()}
    highest = max(chart.axes.get_ylim()[1] for chart in drawn.values())
    for chart in drawn.values():
        chart.axes.set_ylim(0.0, highest)
        linear_y(chart.axes)
        _label_last_bar(chart.axes)
    return drawn


def _stacked(arms: list[Record]) -> Chart:
    """Return a chart with a bar for each rate, and a part for each component."""
    axes = empty_axes("CPU s per million orders", "orders/s")
    arms = sorted(arms, key=rate_of)
    metrics = [arm["metrics"] for arm in arms]
    shown: dict[str, list[float]] = {}
    for name in COMPONENTS:
        heights = [measured.get(cpu_metric(name), {}).get("median", 0.0) for measured in metrics]
        if any(heights):
            shown[name] = heights
    foot = np.zeros(len(arms))
    for name, heights in shown.items():
        bars = axes.bar(range(len(arms)), heights, BAR_WIDTH, bottom=foot, color=ROLE_COLOURS[name], label=name)
        name_parts(name, bars[0], bars[1:])
        foot += heights
    axes.set_xticks(range(len(arms)), [axis_number(rate_of(arm)) for arm in arms])
    rows: list[tuple[Cell, ...]] = []
    for name, heights in shown.items():
        for arm, height in zip(arms, heights, strict=True):
            if height:
                rows.append((name, rate_of(arm), height))
    numbers = Numbers(("series", "orders_per_s", "cpu_s_per_million"), rows)
    return Chart(axes, numbers, hover=numbers, x_places={rate_of(arm): place for place, arm in enumerate(arms)})


def _label_last_bar(axes: Axes) -> None:
    """Name each component beside its part of the last bar."""
    labels = []
    for bars in axes.containers:
        last = bars[-1]
        labels.append(EndLabel(last.get_y() + last.get_height() / 2, str(bars.get_label()), last.get_facecolor()))
    label_ends(axes, labels)
