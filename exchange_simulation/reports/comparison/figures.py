"""The figures of a comparison: completion time against the offered rate, and CPU by component.

Completion time has a line for each contender; a whisker is the middle half of the repeats. CPU has a figure for each
contender.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from matplotlib.axes import Axes

from exchange.json_records import Record
from exchange_simulation.launching.metrics import COMPONENTS
from exchange_simulation.reports.comparison.answer import NAGLE
from exchange_simulation.reports.comparison.sentences import beside_the_rate, cpu_metric
from exchange_simulation.reports.drawing.canvas import empty_axes, linear_y, log_x, log_y
from exchange_simulation.reports.drawing.chart import Chart, EndLabel, Numbers, draw_medians, label_ends, name_parts
from exchange_simulation.reports.drawing.colours import ROLE_COLOURS, line_colours
from exchange_simulation.reports.drawing.figures import Figure
from exchange_simulation.reports.exports import grouped
from exchange_simulation.reports.formats import axis_number, ends, has_enough_orders

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
    """The figures that have LEAST_POINTS to show; the style of page or files must be set.

    Arms that run as fast as possible have no rate, so they have no place on the axis.
    """
    arms = with_rate(record)
    drawn = DRAWN.get(record["study"], USUALLY_DRAWN)
    if not arms:
        return
    if record["study"] == NAGLE:
        for transport, own in grouped(arms, lambda arm: arm["settings"]["transport"]).items():
            yield from (figure for name in drawn for figure in _completion(own, name, f", {transport}"))
        return
    for words, own in grouped(arms, beside_the_rate).items():
        yield from (figure for name in drawn for figure in _completion(own, name, words))
        if len(own) >= LEAST_POINTS:
            yield from (Figure(f"CPU, {name}{words}", chart, CPU) for name, chart in _cpu_by_contender(own).items())


def with_rate(record: Record) -> list[Record]:
    """The arms that were offered a rate, and measured something."""
    return [arm for arm in record["arms"] if arm["settings"]["orders_per_s"] is not None and arm["metrics"]]


def rate_of(arm: Record) -> float:
    return float(arm["settings"]["orders_per_s"])


def contender_of(arm: Record) -> str:
    return str(arm["contender"])


def contender_colours(contenders: Mapping[str, list[Record]]) -> dict[str, str]:
    return line_colours({name: own[0]["settings"]["transport"] for name, own in contenders.items()})


def _completion(arms: list[Record], name: str, words: str) -> Iterator[Figure]:
    """One figure, or none if too few arms measured this percentile; one with too few orders for it did not."""
    metric = f"due_{name}_us"
    arms = [arm for arm in arms if has_enough_orders(name, arm.get("orders_measured"))]
    if sum(metric in arm["metrics"] for arm in arms) >= LEAST_POINTS:
        yield Figure(f"Completion time from due, {name}{words}", _against_rate(arms, metric), COMPLETION)


def _against_rate(arms: list[Record], metric: str) -> Chart:
    axes = empty_axes("µs", "orders/s")
    contenders = grouped(arms, contender_of)
    colours = contender_colours(contenders)
    labels = []
    for place, (name, own) in enumerate(contenders.items()):
        if measured := [arm for arm in own if metric in arm["metrics"]]:
            dodge = 1 + DODGE * (place - (len(contenders) - 1) / 2)
            labels.append(draw_arms(axes, name, sorted(measured, key=rate_of), metric, colours[name], dodge))
    log_x(axes, sorted({rate_of(arm) for arm in arms}))
    log_y(axes)
    label_ends(axes, labels)
    numbers = numbers_of_arms(((contender_of(arm), metric, arm) for arm in arms), "us")
    return Chart(axes, numbers, hover=numbers)


def numbers_of_arms(points: Iterable[tuple[str, str, Record]], unit: str) -> Numbers:
    """A row for each (line's name, metric, arm) that was measured: the rate, the median, the middle half's ends."""
    columns = ("series", "orders_per_s", f"median_{unit}", f"low_{unit}", f"high_{unit}")
    found = [(name, rate_of(arm), arm["metrics"].get(metric)) for name, metric, arm in points]
    return Numbers(columns, [(name, rate, e["median"], *ends(e)) for name, rate, e in found if e])


def draw_arms(axes: Axes, name: str, arms: list[Record], metric: str, colour: str, dodge: float = 1.0) -> EndLabel:
    """Draw the medians of arms against their rates; `dodge` moves their whiskers beside those of other lines."""
    x = np.array([rate_of(arm) for arm in arms]) * dodge
    estimates = [(found["median"], *ends(found)) for found in (arm["metrics"][metric] for arm in arms)]
    return draw_medians(axes, x, estimates, name, colour, full=[arm["held"] for arm in arms])


def _cpu_by_contender(arms: list[Record]) -> dict[str, Chart]:
    drawn = {name: _stacked(own) for name, own in grouped(arms, contender_of).items()}
    highest = max(chart.axes.get_ylim()[1] for chart in drawn.values())
    for chart in drawn.values():
        chart.axes.set_ylim(0.0, highest)
        linear_y(chart.axes)
        _label_last_bar(chart.axes)
    return drawn


def _stacked(arms: list[Record]) -> Chart:
    """A bar for each rate, with a part for each component."""
    axes = empty_axes("CPU s per million orders", "orders/s")
    arms = sorted(arms, key=rate_of)
    metrics = [arm["metrics"] for arm in arms]
    heights_of = {name: [each.get(cpu_metric(name), {}).get("median", 0.0) for each in metrics] for name in COMPONENTS}
    shown = {name: heights for name, heights in heights_of.items() if any(heights)}
    foot = np.zeros(len(arms))
    for name, heights in shown.items():
        bars = axes.bar(range(len(arms)), heights, BAR_WIDTH, bottom=foot, color=ROLE_COLOURS[name], label=name)
        name_parts(name, bars[0], bars[1:])
        foot += heights
    axes.set_xticks(range(len(arms)), [axis_number(rate_of(arm)) for arm in arms])
    rows = [(n, rate_of(arm), h) for n, heights in shown.items() for arm, h in zip(arms, heights, strict=True) if h]
    numbers = Numbers(("series", "orders_per_s", "cpu_s_per_million"), list(rows))
    return Chart(axes, numbers, hover=numbers, x_places={rate_of(arm): place for place, arm in enumerate(arms)})


def _label_last_bar(axes: Axes) -> None:
    """Name each component beside its part of the last bar."""
    labels = []
    for bars in axes.containers:
        last = bars[-1]
        labels.append(EndLabel(last.get_y() + last.get_height() / 2, str(bars.get_label()), last.get_facecolor()))
    label_ends(axes, labels)
