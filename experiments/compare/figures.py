"""The page's figures: completion time against rate, and CPU by component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.compare.completion_figures import against_rate
from experiments.compare.cpu_figures import stacked_by_contender
from experiments.page.canvas import page_style
from experiments.page.inline_svg import inline_svg

COMPLETION = "Medians over repeats with their intervals, both axes logarithmic. Hollow: the rate was not held."
CPU = "Medians over repeats; all transports to one scale."


@dataclass(frozen=True)
class Drawing:
    title: str
    svg: Markup
    caption: str


def draw(record: dict[str, Any]) -> list[Drawing]:
    """What has something to show; rates as fast as it goes have no place on an axis."""
    arms = [arm for arm in record["arms"] if arm["settings"]["orders_per_s"] is not None and arm["metrics"]]
    if not arms:
        return []
    with page_style():
        completion = {name: against_rate(arms, f"due_{name}_us") for name in ("p50", "p99")}
        cpu = stacked_by_contender(arms)
        return [
            *(_drawn(axes, f"Completion time from due, {name}", COMPLETION) for name, axes in completion.items()),
            *(_drawn(axes, f"CPU, {name}", CPU) for name, axes in cpu.items()),
        ]


def _drawn(axes: Axes, title: str, caption: str) -> Drawing:
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    name = "".join(letter for letter in title.lower() if letter.isalnum())
    return Drawing(title, inline_svg(figure, name, title), caption)
