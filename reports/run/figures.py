"""The page's figures: what each draws, and what to read in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from markupsafe import Markup

from reports.drawing.canvas import page_style
from reports.drawing.chart import Chart
from reports.drawing.inline_svg import inline_svg
from reports.run import completion_figures, heat_figure, load_figures
from reports.run.run_folder import RunFolder


@dataclass(frozen=True)
class Plan:
    """A figure before it is drawn; `chart_of` answers None where nothing was measured."""

    name: str
    title: str
    chart_of: Callable[[RunFolder], Chart | None]
    caption: str
    of_schedule: str = ""  # what a run as fast as it goes has no use for,
    without: str = ""  # and what is said of that one instead


@dataclass(frozen=True)
class Drawing:
    plan: Plan
    svg: Markup | None


PLANS = (
    Plan(
        name="completion",
        title="Completion time over the run",
        chart_of=completion_figures.over_time,
        caption="From handing an order over to its first answer. Level lines: the system keeps up. Climbing "
        "lines: orders queue. A gap: a second without an answer. A last moment of few orders is left out.",
    ),
    Plan(
        name="heat",
        title="Every completion over the run",
        chart_of=heat_figure.heat,
        caption="A column is a moment of the run, a row a completion time, the shade how many orders took so long, on "
        "a log scale. A pause is a plume that rises out of the band.",
        of_schedule="Counted from when an order was due, so what waited behind a pause is in its plume.",
        without="Counted from handing over.",
    ),
    Plan(
        name="percentiles",
        title="Completion time by percentile",
        chart_of=completion_figures.by_percentile,
        caption="At 99, read the time within which 99 % of the orders were answered; each step to the right "
        "keeps the slowest tenth.",
        of_schedule="Where the curve from due time leaves the other, the gateway itself was late.",
    ),
    Plan(
        name="rates",
        title="Rates",
        chart_of=load_figures.rates,
        caption="Dots are the gateway's meters at their samples, rings the engine's. The last, unfinished "
        "second is left out of the lines.",
        of_schedule="At a steady rate, orders sent should lie on the offered one.",
    ),
    Plan(
        name="cpu",
        title="CPU",
        chart_of=load_figures.cpu,
        caption="Cores kept busy; dashed, the mean over the run. A component's main thread can use one core, its "
        "I/O threads come on top.",
    ),
)


def run_figures(folder: RunFolder) -> Iterator[tuple[str, str, Chart]]:
    """Name, title and chart of what was measured, in the style that holds."""
    for plan in PLANS:
        if chart := plan.chart_of(folder):
            yield plan.name, plan.title, chart


def draw_figures(folder: RunFolder) -> list[Drawing]:
    with page_style():
        return [_drawn(plan, plan.chart_of(folder)) for plan in PLANS]


def _drawn(plan: Plan, chart: Chart | None) -> Drawing:
    return Drawing(plan, inline_svg(chart.figure, plan.name, plan.title) if chart else None)
