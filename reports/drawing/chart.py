"""A figure that is drawn, and the numbers that it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.drawing.series import Line

Cell = str | int | float | None


@dataclass(frozen=True)
class Numbers:
    """A table of what is drawn; a cell of None has no value."""

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


@dataclass(frozen=True)
class Chart:
    axes: Axes
    numbers: Numbers

    @property
    def figure(self) -> Figure:
        figure = self.axes.get_figure(root=True)
        assert isinstance(figure, Figure)
        return figure


def of_lines(x: str, y: str, lines: Mapping[str, Line]) -> Numbers:
    """The points of each line by its name; a gap is no row, a level has no x."""
    points = [
        (name, at if isfinite(at) else None, value)
        for name, line in lines.items()
        for at, value in zip(line.x.tolist(), line.y.tolist(), strict=True)
        if isfinite(value)
    ]
    return Numbers(("series", x, y), list(points))
