"""The figures of a comparison: completion time against the offered rate, and CPU by component.

Completion time has a line for each contender; a whisker is the middle half of the repeats. CPU has a figure for each
contender.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange_simulation.launching.metrics import COMPONENTS
from exchange_simulation.reports.comparison.answer import NAGLE
from exchange_simulation.reports.comparison.sentences import cpu_metric, factors_beside_rate, in_brackets
from exchange_simulation.reports.drawing.canvas import empty_axes, linear_y, log_x, log_y
from exchange_simulation.reports.drawing.chart import (
    Cell,
    Chart,
    EndLabel,
    Numbers,
    WhiskerPoint,
    draw_medians,
    label_ends,
    name_parts,
)
from exchange_simulation.reports.drawing.colours import ROLE_COLOURS, line_colours
from exchange_simulation.reports.drawing.figures import Figure
from exchange_simulation.reports.formats.estimates import middle_half_ends
from exchange_simulation.reports.formats.few_orders import has_enough_orders
from exchange_simulation.reports.formats.numbers import axis_number

DRAWN_FIGURES = ("p50", "p99")
"""The completion times from due that a page draws against the rate."""
DRAWN_FIGURES_OF_NAGLE = ("mean", "p50")
"""The same, for a study of Nagle's algorithm."""
COMPLETION_CAPTION = "Medians over repeats; whiskers are the middle half of the repeats. Hollow: the rate was not held."
CPU_CAPTION = "Medians over repeats; all transports to one scale."
DODGE = 0.02
"""Two contenders' whiskers are apart by this share of a rate."""
LEAST_POINTS = 4
"""A drawing of three points says less than their three numbers in the table."""
BAR_WIDTH = 0.62
"""In shares of the distance between two rates."""


def trial_figures(record: Record) -> Iterator[Figure]:
    """Yield the figures that have LEAST_POINTS to show; the style of page or files must be set.

    Arms that run as fast as possible have no rate, so they have no place on the axis.
    """
    if record["study"] == NAGLE:
        for medium, arms_of_medium in _arms_by_figure(record).items():
            for figure in DRAWN_FIGURES_OF_NAGLE:
                yield from _completion(arms_of_medium, figure, f", {medium}")
        return
    for factors, arms_with_factors in _arms_by_figure(record).items():
        for figure in DRAWN_FIGURES:
            yield from _completion(arms_with_factors, figure, factors)
        if len(arms_with_factors) >= LEAST_POINTS:
            for contender, chart in _cpu_by_contender(arms_with_factors).items():
                yield Figure(f"CPU, {contender}{factors}", chart, CPU_CAPTION)


def _arms_by_figure(record: Record) -> dict[str, list[Record]]:
    """Return the arms with a rate that share figures, by the end of the figures' titles; of Nagle's, by the medium."""
    arms = arms_with_rate(record)
    return by_medium(arms) if record["study"] == NAGLE else grouped(arms, factors_beside_rate)


def why_no_figures(record: Record) -> str:
    """Return why `trial_figures` yields nothing.

    For example: a picture needs 4 arms or more, each with a rate, and here are 2; rows() has their figures
    """
    arms_by_figure = _arms_by_figure(record)
    most = max((len(arms) for arms in arms_by_figure.values()), default=0)
    here = f"at most {most} that belong together" if len(arms_by_figure) > 1 else str(most)
    needed = f"a picture needs {LEAST_POINTS} arms or more, each with a rate"
    return f"{needed}, and here are {here}; rows() has their figures"


def arms_with_rate(record: Record) -> list[Record]:
    """Return the arms that were offered a rate, and measured something."""
    return [arm for arm in record["arms"] if arm["settings"]["orders_per_s"] is not None and arm["metrics"]]


def rate_of(arm: Record) -> float:
    return float(arm["settings"]["orders_per_s"])


def contender_of(arm: Record) -> str:
    return str(arm["contender"])


def line_labels(arms: list[Record]) -> dict[str, str]:
    """Return the label of each contender's line: its name, and in brackets what `in_brackets` says of it.

    For example: {"shm": "shm (no network)"}
    """
    return {contender_of(arm): contender_of(arm) + in_brackets(arm, arms) for arm in arms}


def transport_of(arm: Record) -> str:
    return str(arm["settings"]["transport"])


def by_medium(arms: list[Record]) -> dict[str, list[Record]]:
    """Return the arms over each transport; if arms have several networks, over each transport on each network.

    For example: {"amqp": [...]}; {"amqp, gige": [...], "amqp, local": [...]}
    """
    networks = {arm["settings"].get("network") for arm in arms}
    if len(networks) == 1:
        return grouped(arms, transport_of)
    return grouped(arms, lambda arm: f"{transport_of(arm)}, {arm['settings']['network']}")


def contender_colours(arms_by_contender: Mapping[str, list[Record]]) -> dict[str, str]:
    """Return a colour for each contender, by its arms' transport."""
    return line_colours({contender: transport_of(arms[0]) for contender, arms in arms_by_contender.items()})


def _completion(arms: list[Record], figure: str, title_suffix: str) -> Iterator[Figure]:
    """Yield a chart of one figure of completion times, or none if fewer than LEAST_POINTS arms measured that figure.

    An arm with too few orders for a percentile did not measure the percentile.
    """
    metric = f"due_{figure}_us"
    arms = [arm for arm in arms if has_enough_orders(figure, arm.get("orders_measured"))]
    if sum(metric in arm["metrics"] for arm in arms) >= LEAST_POINTS:
        chart = _against_rate(arms, metric)
        yield Figure(f"Completion time from due, {figure}{title_suffix}", chart, COMPLETION_CAPTION)


def _against_rate(arms: list[Record], metric: str) -> Chart:
    axes = empty_axes("µs", "orders/s")
    arms_by_contender = grouped(arms, contender_of)
    colours = contender_colours(arms_by_contender)
    names = line_labels(arms)
    middle_place = (len(arms_by_contender) - 1) / 2
    labels = []
    for place, (contender, arms_of_contender) in enumerate(arms_by_contender.items()):
        measured = [arm for arm in arms_of_contender if metric in arm["metrics"]]
        if measured:
            dodge = 1 + DODGE * (place - middle_place)
            line = sorted(measured, key=rate_of)
            labels.append(draw_arms(axes, names[contender], line, metric, colours[contender], dodge))
    log_x(axes, sorted({rate_of(arm) for arm in arms}))
    log_y(axes)
    label_ends(axes, labels)
    points = [RatePoint(contender_of(arm), metric, arm) for arm in arms]
    labelled_points = [RatePoint(names[contender_of(arm)], metric, arm) for arm in arms]
    return Chart(axes, numbers_of_points(points, "us"), hover=numbers_of_points(labelled_points, "us"))


@dataclass(frozen=True)
class RatePoint:
    """A metric of an arm, drawn over the arm's rate as a point of the line `series`."""

    series: str
    metric: str
    arm: Record


def numbers_of_points(points: Iterable[RatePoint], unit: str) -> Numbers:
    """Return a row for each point that was measured: its line, rate, median, and ends of the middle half."""
    columns = ("series", "orders_per_s", f"median_{unit}", f"low_{unit}", f"high_{unit}")
    rows: list[tuple[Cell, ...]] = []
    for point in points:
        estimate = point.arm["metrics"].get(point.metric)
        if estimate:
            low, high = middle_half_ends(estimate)
            rows.append((point.series, rate_of(point.arm), estimate["median"], low, high))
    return Numbers(columns, rows)


def draw_arms(axes: Axes, name: str, arms: list[Record], metric: str, colour: str, dodge: float = 1.0) -> EndLabel:
    """Draw the medians of arms against their rates; `dodge` moves their whiskers beside those of other lines."""
    x = np.array([rate_of(arm) for arm in arms]) * dodge
    medians = []
    for arm in arms:
        estimate = arm["metrics"][metric]
        low, high = middle_half_ends(estimate)
        medians.append(WhiskerPoint(estimate["median"], low, high))
    return draw_medians(axes, x, medians, name, colour, full=[arm["held"] for arm in arms])


def _cpu_by_contender(arms: list[Record]) -> dict[str, Chart]:
    """Return a chart for each contender, all to one scale."""
    charts = {}
    for contender, arms_of_contender in grouped(arms, contender_of).items():
        charts[contender] = _cpu_bars(arms_of_contender)
    highest = max(chart.axes.get_ylim()[1] for chart in charts.values())
    for chart in charts.values():
        chart.axes.set_ylim(0.0, highest)
        linear_y(chart.axes)
        _label_last_bar(chart.axes)
    return charts


def _cpu_bars(arms: list[Record]) -> Chart:
    """Return a chart with a bar for each rate, and a part of the bar for each component."""
    axes = empty_axes("CPU s per million orders", "orders/s")
    arms = sorted(arms, key=rate_of)
    heights_by_component: dict[str, list[float]] = {}
    for component in COMPONENTS:
        heights = [_median_cpu(arm, component) for arm in arms]
        if any(heights):
            heights_by_component[component] = heights
    places = range(len(arms))
    bottom = np.zeros(len(arms))
    for component, heights in heights_by_component.items():
        bars = axes.bar(places, heights, BAR_WIDTH, bottom=bottom, color=ROLE_COLOURS[component], label=component)
        name_parts(component, bars[0], bars[1:])
        bottom += heights
    axes.set_xticks(places, [axis_number(rate_of(arm)) for arm in arms])
    rows: list[tuple[Cell, ...]] = []
    for component, heights in heights_by_component.items():
        for arm, height in zip(arms, heights, strict=True):
            if height:
                rows.append((component, rate_of(arm), height))
    numbers = Numbers(("series", "orders_per_s", "cpu_s_per_million"), rows)
    x_places = {rate_of(arm): place for place, arm in enumerate(arms)}
    return Chart(axes, numbers, hover=numbers, x_places=x_places)


def _median_cpu(arm: Record, component: str) -> float:
    """Return the median of a component's CPU seconds per million orders; 0 if it was not measured."""
    estimate: Record | None = arm["metrics"].get(cpu_metric(component))
    return float(estimate["median"]) if estimate else 0.0


def _label_last_bar(axes: Axes) -> None:
    """Name each component beside its part of the last bar."""
    labels = []
    for bars in axes.containers:
        last_bar = bars[-1]
        middle = last_bar.get_y() + last_bar.get_height() / 2
        labels.append(EndLabel(middle, str(bars.get_label()), last_bar.get_facecolor()))
    label_ends(axes, labels)
