"""Lines, each named beside its end instead of in a legend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from reports.drawing.canvas import BOTTOM, HEIGHT, TOP
from reports.drawing.series import Line

LABEL_GAP = 15 / (HEIGHT - TOP - BOTTOM)  # of the axes' height, from one label to the next


@dataclass(frozen=True)
class EndLabel:
    """The name of a line, to stand beside its end."""

    y: float
    text: str
    colour: str


def draw(axes: Axes, line: Line, *, text: str, colour: str) -> EndLabel:
    """A line; or marks, where there are too few points for a line to be seen."""
    measured = line.y[np.isfinite(line.y)]
    axes.plot(line.x, line.y, "o-" if len(measured) < 3 else "-", color=colour, clip_on=False)
    return EndLabel(float(measured[-1]), text, colour)


def draw_level(axes: Axes, y: float, *, text: str, colour: str) -> EndLabel:
    """One number for the whole run."""
    axes.axhline(y, color=colour, linestyle="--", linewidth=1.3)
    return EndLabel(y, text, colour)


def label_ends(axes: Axes, labels: list[EndLabel]) -> None:
    """Each label as near to its line's end as its neighbours allow; for when the axes' limits stand."""
    to_share = axes.transData + axes.transAxes.inverted()
    x = axes.get_xlim()[1]
    wanted = [(float(to_share.transform((x, label.y))[1]), -i, label) for i, label in enumerate(labels)]
    upwards = sorted(wanted)  # of equals, the one drawn first stands higher
    for (_, _, label), share in zip(upwards, _spread([share for share, _, _ in upwards]), strict=True):
        axes.text(1.035, share, label.text, color=label.colour, transform=axes.transAxes, va="center")


def _spread(shares: list[float]) -> list[float]:
    """Push the labels apart upwards, then shift down again what left the axes at the top."""
    spread: list[float] = []
    for share in shares:
        spread.append(max(share, spread[-1] + LABEL_GAP if spread else 0.0))
    ceiling = 1.0
    for i in reversed(range(len(spread))):
        spread[i] = min(spread[i], ceiling)
        ceiling = spread[i] - LABEL_GAP
    return spread
