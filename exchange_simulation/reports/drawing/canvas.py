"""An empty figure in the page's style: its axes, its units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import get_named_colors_mapping
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import offset_copy

from exchange_simulation.reports.drawing.colours import GRID, INK, MUTED, STAND_INS
from exchange_simulation.reports.formats.numbers import axis_number

# In points, one for each pixel of a small screen, so that the text stays legible there.
WIDTH = 440
HEIGHT = 270
TEXT = 11.5
LEFT = 58
"""The margin of the axes; so are RIGHT, TOP and BOTTOM."""
RIGHT = 92
"""The least margin: it grows with the longest text in it."""
LEAST_AXES_WIDTH = 160
X_UNIT_FROM_AXES = 22
LARGEST_TEXT = 12.5
"""The size of text in the drawings of a suite's first page, whose text is the largest."""
TOP = 28
BOTTOM = 34
POINTS_PER_INCH = 72
LEAST_GAP = 0.14
"""Two numbers beside a linear axis are apart by this share of the axis at least."""
MOST_NUMBERS = 6
"""The most numbers beside a log axis."""
FINE_TICKS_BELOW = 50
"""If the highest value of a log axis is less than this many times the lowest, lines are also at 2 and 5."""
NumberInWords: TypeAlias = Callable[[float, int | None], str]
"""Writes the number beside a tick, given the tick's value and position."""

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "exchange",
    "text.parse_math": False,
    "path.simplify": False,
    "font.size": TEXT,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.linewidth": 1.0,
    "axes.axisbelow": True,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 1.0,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "ytick.major.size": 0,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
}


def paint(palette: Mapping[str, str]) -> None:
    """Have matplotlib draw each colour's name in this colour from now on."""
    named = get_named_colors_mapping()
    for name, colour in palette.items():
        named[name] = colour  # update() would leave the value that matplotlib has cached for the name


paint(STAND_INS)


@contextmanager
def page_style(palette: Mapping[str, str] = STAND_INS) -> Iterator[None]:
    """Set the page's style. Draw and save inside: matplotlib reads some settings and colours only when it saves."""
    paint(palette)
    try:
        with mpl.rc_context(STYLE):
            yield
    finally:
        paint(STAND_INS)


def empty_axes(y_unit: str, x_unit: str) -> Axes:
    """Return axes with their units above and beside them, not rotated."""
    figure = Figure(figsize=(WIDTH / POINTS_PER_INCH, HEIGHT / POINTS_PER_INCH))
    box = (LEFT / WIDTH, BOTTOM / HEIGHT, 1 - (LEFT + RIGHT) / WIDTH, 1 - (TOP + BOTTOM) / HEIGHT)
    axes = figure.add_axes(box)
    figure.text(2 / WIDTH, 1 - 12 / HEIGHT, y_unit, color=MUTED)
    beside_axis = offset_copy(axes.transAxes, figure, X_UNIT_FROM_AXES, 18.5 - BOTTOM, units="points")
    axes.text(1, 0, x_unit, color=MUTED, transform=beside_axis)
    _make_room(axes, X_UNIT_FROM_AXES + text_width(x_unit))
    return axes


def text_width(text: str) -> float:
    """Return the width of a text in points, in the largest size in which a page shows it."""
    if not text:
        return 0.0
    return float(TextPath((0, 0), text, size=LARGEST_TEXT, prop=FontProperties()).get_extents().x1)


def make_room_for_labels(axes: Axes, labels: Sequence[str], distance: float) -> None:
    """Make the axes narrower if a label, which begins at this share of their width, would end outside the drawing."""
    axes_width = axes.get_position().width * WIDTH
    longest = max(map(text_width, labels), default=0.0)
    _make_room(axes, (distance - 1) * axes_width + longest)


def _make_room(axes: Axes, needed: float) -> None:
    """Give the axes a right margin of at least `needed` points; they keep LEAST_AXES_WIDTH."""
    box = axes.get_position()
    margin = WIDTH * (1 - box.x1)
    if needed <= margin:
        return
    width = max(LEAST_AXES_WIDTH, WIDTH * (1 - box.x0) - needed)
    axes.set_position((box.x0, box.y0, width / WIDTH, box.height))


def time_x(axes: Axes, length_s: float) -> None:
    """Set an axis over the whole run; charts over the same time have the same axis."""
    axes.set_xlim(0.0, max(length_s, 1.0))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def linear_x(axes: Axes, values: Sequence[float], in_words: NumberInWords = axis_number) -> None:
    """Set an axis from zero. Numbers stand at the last value, and at those that are far enough from other numbers."""
    axes.set_xlim(0.0, values[-1] * 1.04)
    shown = [0.0]
    for value in reversed(values):
        if all(abs(value - other) >= LEAST_GAP * values[-1] for other in shown):
            shown.append(value)
    _numbers_at(axes, sorted(shown), in_words)


def log_x(axes: Axes, values: Sequence[float], in_words: NumberInWords = axis_number) -> None:
    """Set a log axis. Numbers stand at the first value, and at each that is far enough from the number before."""
    axes.set_xscale("log")
    axes.set_xlim(values[0] / 1.15, values[-1] * 1.15)
    least_ratio = (values[-1] / values[0]) ** (1 / MOST_NUMBERS)
    tolerance = 0.999  # values that are evenly spaced must not miss the ratio by rounding
    shown = [values[0]]
    for value in values[1:]:
        if value >= tolerance * least_ratio * shown[-1]:
            shown.append(value)
    _numbers_at(axes, shown, in_words)


def separate_x(axes: Axes, values: Sequence[float]) -> None:
    """Set an axis whose values are names, as those of interactions 1 to 7: each has its number and equal room."""
    axes.set_xlim(values[0] - 0.5, values[-1] + 0.5)
    _numbers_at(axes, list(values), axis_number)


def _numbers_at(axes: Axes, values: list[float], in_words: NumberInWords) -> None:
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(in_words))


def linear_y(axes: Axes) -> None:
    """Set an axis from zero, so that heights can be compared."""
    axes.set_ylim(0.0, axes.get_ylim()[1] * 1.05)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(axis_number))


def log_y(axes: Axes) -> None:
    """Set a log axis from grid line to grid line; lines at whole decades, or, for few decades, at 1, 2, 5, 10 ..."""
    axes.set_yscale("log")
    low, high = axes.dataLim.intervaly
    steps = (1.0, 2.0, 5.0) if high / low < FINE_TICKS_BELOW else (1.0,)
    lines = np.outer(10.0 ** np.arange(-4, 12), steps).ravel()
    lines_below = lines[lines < low]
    lines_above = lines[lines >= high]
    axes.set_ylim(lines_below[-1], lines_above[0])
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(axis_number))
