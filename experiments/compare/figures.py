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
from experiments.trials.study import COMPARE, STUDIES

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
    drawn = STUDIES[record["study"]].drawn
    with page_style():
        if record["study"] != COMPARE.name:
            return [_completion(part, name, f", {words}") for words, part in _over(arms).items() for name in drawn]
        cpu = stacked_by_contender(arms)
        return [*(_completion(arms, name) for name in drawn), *(_drawn(cpu[name], f"CPU, {name}", CPU) for name in cpu)]


def _over(arms: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The arms by transport: a figure each."""
    transports = dict.fromkeys(arm["settings"]["transport"] for arm in arms)
    return {name: [arm for arm in arms if arm["settings"]["transport"] == name] for name in transports}


def _completion(arms: list[dict[str, Any]], name: str, over: str = "") -> Drawing:
    return _drawn(against_rate(arms, f"due_{name}_us"), f"Completion time from due, {name}{over}", COMPLETION)


def _drawn(axes: Axes, title: str, caption: str) -> Drawing:
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    name = "".join(letter for letter in title.lower() if letter.isalnum())
    return Drawing(title, inline_svg(figure, name, title), caption)
