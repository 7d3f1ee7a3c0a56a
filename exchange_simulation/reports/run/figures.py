"""The figures of a run's page: how each is drawn, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from exchange.json_records import Record
from exchange_simulation.reports.drawing.canvas import page_style
from exchange_simulation.reports.drawing.chart import Chart
from exchange_simulation.reports.drawing.figures import Drawing, Figure, drawing_of
from exchange_simulation.reports.formats.numbers import three_digits
from exchange_simulation.reports.run import completion, heat, load
from exchange_simulation.reports.run.run_folder import (
    RunFolder,
    has_charts_over_time,
    has_rates_per_s,
    is_scheduled,
    length_s,
    seconds_begun,
)


@dataclass(frozen=True)
class FigurePlan:
    """A figure before it is drawn; `chart_of` returns None if nothing was measured, or too little for a chart."""

    name: str
    title: str
    """`{since}` is where completion times begin: "from due", or "from handing over" in a run as fast as it goes."""
    chart_of: Callable[[RunFolder], Chart | None]
    caption: str
    schedule_caption: str = ""
    """Words that follow the caption in a run with a schedule."""

    def title_of(self, run: Record) -> str:
        return self.title.format(since="from due" if is_scheduled(run) else "from handing over")

    def figure_of(self, folder: RunFolder) -> Figure | None:
        chart = self.chart_of(folder)
        if chart is None:
            return None
        caption = self.caption
        if self.schedule_caption and is_scheduled(folder.run):
            caption += f" {self.schedule_caption}"
        return Figure(self.title_of(folder.run), chart, caption, self.name)

    def drawing_of(self, folder: RunFolder) -> Drawing:
        figure = self.figure_of(folder)
        if figure is None:
            return Drawing(self.name, self.title_of(folder.run), None, "Not measured.")
        return drawing_of(figure)


CURVE = FigurePlan(
    name="percentiles",
    title="Completion time by percentile, µs, {since}",
    chart_of=completion.by_percentile,
    caption="At 99, read the time within which 99 % of the orders were answered; each step to the right keeps the "
    "slowest tenth.",
    schedule_caption="Where the curve from due leaves the one from handing over, the gateway itself was late.",
)
OVER_TIME = (
    FigurePlan(
        name="completion",
        title="Completion time over the run, µs, {since}",
        chart_of=completion.over_time,
        caption="Level lines: the system keeps up. Climbing lines: orders queue. A gap: a second without an answer. A "
        "last moment of few orders is left out.",
    ),
    FigurePlan(
        name="heat",
        title="Every completion over the run, µs, {since}",
        chart_of=heat.heat,
        caption="A column is a moment of the run, a row a completion time, the shade how many orders took so long, on "
        "a log scale. A pause is a plume that rises out of the band.",
    ),
    FigurePlan(
        name="rates",
        title="Orders and answers a second, by the gateway's clock",
        chart_of=load.rates,
        caption="Orders sent and answered, and the answers: trades, confirmations and quotes. Dots are the gateway's "
        "meters at their samples, rings the engine's.",
        schedule_caption="At a steady rate the orders sent lie on the offered rate, and those answered on those sent.",
    ),
    FigurePlan(
        name="cpu",
        title="CPU by component, cores in use",
        chart_of=load.cpu,
        caption="Cores kept busy in each second; dashed, the mean over the run. A component's main thread can use one "
        "core, its I/O threads come on top.",
    ),
)


def run_figures(folder: RunFolder) -> Iterator[Figure]:
    """Yield the figures for which something was measured; the style of page or files must be set."""
    for plan in (CURVE, *OVER_TIME):
        figure = plan.figure_of(folder)
        if figure is not None:
            yield figure


@dataclass(frozen=True)
class RunDrawings:
    """The drawings of the page. `too_short` is the sentence that replaces the drawings over time, or empty."""

    curve: Drawing
    over_time: list[Drawing]
    too_short: str

    @property
    def all(self) -> list[Drawing]:
        return [self.curve, *self.over_time]


def run_drawings(folder: RunFolder) -> RunDrawings:
    with page_style():
        curve = CURVE.drawing_of(folder)
        too_short = _too_short(folder)
        over_time = [] if too_short else [plan.drawing_of(folder) for plan in OVER_TIME]
        return RunDrawings(curve, over_time, too_short)


def _too_short(folder: RunFolder) -> str:
    """Return the sentence in place of charts over time; empty if they are drawn, or if nothing was measured."""
    if has_charts_over_time(folder) or not seconds_begun(folder.spool):
        return ""
    length = three_digits(length_s(folder))
    if not has_rates_per_s(folder):
        return f"The run took {length} s, too short for rates by second and for charts over time."
    return f"The run took {length} s: too short for lines over time. The table of its seconds has them."
