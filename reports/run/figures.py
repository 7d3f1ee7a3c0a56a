"""The figures of a run's page: how each is drawn, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reports.drawing.canvas import page_style
from reports.drawing.chart import Chart
from reports.drawing.figures import Drawing, Figure, drawing_of
from reports.run import completion, heat, load
from reports.run.run_folder import RunFolder, is_scheduled


@dataclass(frozen=True)
class Plan:
    """A figure before it is drawn; `chart_of` returns None if nothing was measured."""

    name: str
    title: str
    chart_of: Callable[[RunFolder], Chart | None]
    caption: str
    scheduled: str = ""  # added to the caption of a run with a schedule,
    unscheduled: str = ""  # and of one as fast as it goes

    def figure_of(self, folder: RunFolder) -> Figure | None:
        chart = self.chart_of(folder)
        more = self.scheduled if is_scheduled(folder.run) else self.unscheduled
        return Figure(self.title, chart, f"{self.caption} {more}", self.name) if chart else None


PLANS = (
    Plan(
        name="completion",
        title="Completion time over the run",
        chart_of=completion.over_time,
        caption="From handing an order over to its first answer. Level lines: the system keeps up. Climbing "
        "lines: orders queue. A gap: a second without an answer. A last moment of few orders is left out.",
    ),
    Plan(
        name="heat",
        title="Every completion over the run",
        chart_of=heat.heat,
        caption="A column is a moment of the run, a row a completion time, the shade how many orders took so long, on "
        "a log scale. A pause is a plume that rises out of the band.",
        scheduled="Counted from when an order was due, so what waited behind a pause is in its plume.",
        unscheduled="Counted from handing over.",
    ),
    Plan(
        name="percentiles",
        title="Completion time by percentile",
        chart_of=completion.by_percentile,
        caption="At 99, read the time within which 99 % of the orders were answered; each step to the right "
        "keeps the slowest tenth.",
        scheduled="Where the curve from due time leaves the other, the gateway itself was late.",
    ),
    Plan(
        name="rates",
        title="Rates",
        chart_of=load.rates,
        caption="Dots are the gateway's meters at their samples, rings the engine's. The last, unfinished "
        "second is left out of the lines.",
        scheduled="At a steady rate, orders sent should lie on the offered one.",
    ),
    Plan(
        name="cpu",
        title="CPU",
        chart_of=load.cpu,
        caption="Cores kept busy; dashed, the mean over the run. A component's main thread can use one core, its "
        "I/O threads come on top.",
    ),
)


def run_figures(folder: RunFolder) -> Iterator[Figure]:
    """The figures of what was measured; the style of page or files must be set."""
    for plan in PLANS:
        if figure := plan.figure_of(folder):
            yield figure


def run_drawings(folder: RunFolder) -> list[Drawing]:
    """Every figure of the page; a figure without measured values says so."""
    with page_style():
        return [
            drawing_of(figure)
            if (figure := plan.figure_of(folder))
            else Drawing(plan.name, plan.title, None, "Not measured.")
            for plan in PLANS
        ]
