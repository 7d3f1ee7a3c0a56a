"""A chart: lines on axes, each named beside its end, and the numbers that they show.

A value of NaN was not measured: it is a gap in the line, never a zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from exchange_simulation.reports.drawing.canvas import BOTTOM, HEIGHT, TOP, make_room_for_labels
from exchange_simulation.reports.drawing.colours import MUTED

LABELS_BEGIN = 1.035
"""Where labels begin, in shares of the axes' width."""
MOST_MARKS = 40
"""A line through more points has no marks."""
LABEL_GAP = 15 / (HEIGHT - TOP - BOTTOM)
"""The distance from one label to the next, in shares of the axes' height."""

Floats = npt.NDArray[np.float64]
Cell = str | int | float | None


@dataclass(frozen=True)
class Numbers:
    """A table of the drawn values; a cell of None has no value."""

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


@dataclass(frozen=True)
class Chart:
    """Axes with everything drawn on them, and the numbers behind the drawing."""

    axes: Axes
    numbers: Numbers
    tint: str = MUTED
    """The colour of an image's shades."""
    x_scale: str = ""
    """The name of the x axis' scale for the page's script, if it is none of matplotlib's."""
    hover: Numbers | None = None
    """Values that the pointer shows: series, x, y, ends of an interval. None: the points of the drawing's lines."""
    x_places: Mapping[float, float] | None = None
    """Where each x of `hover` is drawn, if not at its own value: an axis of categories numbers them."""
    cells: Mapping[str, Any] | None = None
    """The cells of a heat map, for the pointer."""

    @property
    def figure(self) -> Figure:
        figure = self.axes.get_figure(root=True)
        assert isinstance(figure, Figure)
        return figure


@dataclass(frozen=True)
class Line:
    """A line of a chart: x in seconds since the first order, or in nines (3 for 99.9 %); y in the axis' unit."""

    x: Floats
    y: Floats

    @property
    def is_level(self) -> bool:
        return bool(np.isnan(self.x).all())


def level(y: float) -> Line:
    """Return a line for one number of the whole run; it has no x."""
    return Line(np.array([np.nan]), np.array([y]))


def numbers_of(x: str, y: str, lines: Mapping[str, Line]) -> Numbers:
    """Return the points of each line by its name. A gap makes no row; a level has no x."""
    rows: list[tuple[Cell, ...]] = []
    for name, line in lines.items():
        for place, value in zip(line.x.tolist(), line.y.tolist(), strict=True):
            if isfinite(value):
                rows.append((name, place if isfinite(place) else None, value))
    return Numbers(("series", x, y), rows)


@dataclass(frozen=True)
class EndLabel:
    """A line's name, to be written beside its end."""

    y: float
    text: str
    colour: str


def draw(axes: Axes, line: Line, *, text: str, colour: str) -> EndLabel:
    """Draw a level as a dashed line, and another line with marks if it has fewer than 3 points. Return its label."""
    if line.is_level:
        y = float(line.y[0])
        axes.axhline(y, color=colour, linestyle="--", linewidth=1.3, gid=series_id("line", text))
        return EndLabel(y, text, colour)
    measured = line.y[np.isfinite(line.y)]
    marks = "o-" if len(measured) < 3 else "-"
    axes.plot(line.x, line.y, marks, color=colour, clip_on=False, gid=series_id("line", text))
    return EndLabel(float(measured[-1]), text, colour)


def series_id(part: str, text: str) -> str:
    """Return the id of a series' line or label in the drawing, by which the page's script finds both."""
    return f"{part}-{re.sub(r'[^a-zA-Z0-9]+', '-', text).strip('-')}"


def name_parts(text: str, line: Artist, others: Iterable[Artist]) -> None:
    """Give a series' line and its other parts, such as marks, the ids by which the page's script finds them."""
    line.set_gid(series_id("line", text))
    for number, part in enumerate(others, start=1):
        part.set_gid(f"{series_id('part', text)}--{number}")


@dataclass(frozen=True)
class WhiskerPoint:
    """A median, and the ends of its whisker."""

    median: float
    low: float
    high: float


def draw_medians(
    axes: Axes,
    x: Floats,
    points: Sequence[WhiskerPoint],
    name: str,
    colour: str,
    style: str = "-",
    full: Sequence[bool] | None = None,
) -> EndLabel:
    """Draw a line of medians with whiskers; marks that are not `full` are hollow. Return the line's label."""
    median = np.array([point.median for point in points])
    low = np.array([point.low for point in points])
    high = np.array([point.high for point in points])
    has_marks = len(x) <= MOST_MARKS
    cap_size = 3 if has_marks else 0
    mark_size = 5 if has_marks else 0
    # An end that rounding has put on the other side of the median would be a negative length.
    lengths = np.abs((median - low, high - median))
    bars = axes.errorbar(x, median, lengths, color=colour, linestyle=style, linewidth=1.4, capsize=cap_size)
    line, caps, whiskers = bars.lines
    parts = [*caps, *whiskers]
    is_full = np.ones(len(x), bool) if full is None else np.array(full)
    for mask, fill in ((is_full, colour), (~is_full, "none")):  # full marks, then hollow ones
        parts += axes.plot(x[mask], median[mask], "o", color=colour, markersize=mark_size, markerfacecolor=fill)
    name_parts(name, line, parts)
    return EndLabel(float(median[-1]), name, colour)


def label_ends(axes: Axes, labels: list[EndLabel]) -> None:
    """Write each label as near to its line's end as its neighbours allow. Call it when the axes' limits are final.

    The axes become narrower if a label would end outside the drawing.
    """
    make_room_for_labels(axes, [label.text for label in labels], LABELS_BEGIN)
    share_of_axes = axes.transData + axes.transAxes.inverted()
    right = axes.get_xlim()[1]

    def height(label: EndLabel) -> float:
        """Return the height of the line's end, as a share of the axes' height."""
        return float(share_of_axes.transform((right, label.y))[1])

    # Reversed, so that of labels with equal heights, the first one stands highest: sorting is stable.
    last_first = labels[::-1]
    upwards = sorted(last_first, key=height)
    heights = _spread([height(label) for label in upwards])
    for label, share in zip(upwards, heights, strict=True):
        gid = series_id("label", label.text)
        axes.text(LABELS_BEGIN, share, label.text, color=label.colour, transform=axes.transAxes, va="center", gid=gid)


def _spread(shares: list[float]) -> list[float]:
    """Push the labels apart upwards, then shift labels that left the axes at the top down again."""
    spread: list[float] = []
    floor = 0.0
    for share in shares:
        spread.append(max(share, floor))
        floor = spread[-1] + LABEL_GAP
    ceiling = 1.0
    for i in reversed(range(len(spread))):
        spread[i] = min(spread[i], ceiling)
        ceiling = spread[i] - LABEL_GAP
    return spread
