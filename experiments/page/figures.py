"""The page's figures: what each draws, and what to read in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes

from experiments.page import completion_figures, load_figures
from experiments.page.canvas import page_style
from experiments.page.inline_svg import inline_svg
from experiments.page.run_folder import RunFolder


@dataclass(frozen=True)
class Plan:
    """A figure before it is drawn; `axes_of` answers None where nothing was measured."""

    name: str
    title: str
    axes_of: Callable[[RunFolder], Axes | None]
    caption: str
    of_schedule: str = ""  # what a run as fast as it goes has no use for


@dataclass(frozen=True)
class Drawing:
    plan: Plan
    svg: Markup | None


PLANS = (
    Plan(
        name="completion",
        title="Completion time over the run",
        axes_of=completion_figures.over_time,
        caption="From handing an order over to its first answer. Level lines: the system keeps up. Climbing "
        "lines: orders queue. A gap: a second without an answer. A last moment of few orders is left out.",
    ),
    Plan(
        name="percentiles",
        title="Completion time by percentile",
        axes_of=completion_figures.by_percentile,
        caption="At 99, read the time within which 99 % of the orders were answered; each step to the right "
        "keeps the slowest tenth.",
        of_schedule="Where the curve from due time leaves the other, the gateway itself was late.",
    ),
    Plan(
        name="rates",
        title="Rates",
        axes_of=load_figures.rates,
        caption="Dots are the gateway's meters at their samples, rings the engine's. The last, unfinished "
        "second is left out of the lines.",
        of_schedule="Orders sent should lie on the offered rate.",
    ),
    Plan(
        name="cpu",
        title="CPU",
        axes_of=load_figures.cpu,
        caption="Cores kept busy; dashed, the mean over the run. A component's main thread can use one core, its "
        "I/O threads come on top.",
    ),
)


def draw_figures(folder: RunFolder) -> list[Drawing]:
    with page_style():
        return [_drawn(plan, folder) for plan in PLANS]


def _drawn(plan: Plan, folder: RunFolder) -> Drawing:
    axes = plan.axes_of(folder)
    figure = axes.get_figure(root=True) if axes is not None else None
    return Drawing(plan, inline_svg(figure, plan.name, plan.title) if figure else None)
