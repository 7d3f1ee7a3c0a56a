"""The page's figures: completion time against rate, and CPU by component."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from reports.comparison.completion_figures import against_rate, by
from reports.comparison.cpu_figures import stacked_by_contender
from reports.comparison.naming import beside_the_rate
from reports.drawing.canvas import page_style
from reports.drawing.chart import Chart
from reports.drawing.inline_svg import inline_svg

NAGLE = "nagle"
DRAWN = {NAGLE: ("mean", "p50")}
"""Completion times from due that a study's page draws against rate; all others draw USUALLY_DRAWN."""
USUALLY_DRAWN = ("p50", "p99")
COMPLETION = "Medians over repeats with their intervals, both axes logarithmic. Hollow: the rate was not held."
CPU = "Medians over repeats; all transports to one scale."


@dataclass(frozen=True)
class Figure:
    title: str
    chart: Chart
    caption: str

    @property
    def name(self) -> str:
        """Of its files, and before its ids on the page."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    @property
    def svg(self) -> Markup:
        """In the style that holds."""
        return inline_svg(self.chart.figure, self.name, self.title)


@dataclass(frozen=True)
class Drawing:
    title: str
    svg: Markup
    caption: str


def draw(record: dict[str, Any]) -> list[Drawing]:
    """The page's figures."""
    return drawings(trial_figures(record))


def drawings(figures: Iterable[Figure]) -> list[Drawing]:
    """Figures as the page has them; made in its style, so given before they are."""
    with page_style():
        return [Drawing(figure.title, figure.svg, figure.caption) for figure in figures]


def trial_figures(record: dict[str, Any]) -> Iterator[Figure]:
    """What has something to show, in the style that holds; rates as fast as it goes have no place on an axis."""
    arms = with_rate(record)
    drawn = DRAWN.get(record["study"], USUALLY_DRAWN)
    if not arms:
        return
    if record["study"] == NAGLE:
        over = by(arms, lambda arm: arm["settings"]["transport"])
        yield from (f for words, own in over.items() for name in drawn for f in _completion(own, name, f", {words}"))
        return
    for words, own in by(arms, beside_the_rate).items():
        yield from (figure for name in drawn for figure in _completion(own, name, words))
        yield from (Figure(f"CPU, {name}{words}", chart, CPU) for name, chart in stacked_by_contender(own).items())


def with_rate(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The arms that were offered a rate, and measured something."""
    return [arm for arm in record["arms"] if arm["settings"]["orders_per_s"] is not None and arm["metrics"]]


def _completion(arms: list[dict[str, Any]], name: str, over: str = "") -> Iterator[Figure]:
    """Nothing where no arm has measured it."""
    metric = f"due_{name}_us"
    measured = [arm for arm in arms if metric in arm["metrics"]]
    if measured:
        yield Figure(f"Completion time from due, {name}{over}", against_rate(arms, metric), COMPLETION)
