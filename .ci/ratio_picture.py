"""An SVG of ratios with their intervals: panels of rows on one logarithmic axis, in light and in dark colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
LABEL_WIDTH = 150
AXIS_WIDTH = 400
GAP = 20
"""Between the axis and the ratio in figures."""
FIGURES_WIDTH = 130
COLUMN_WIDTH = 85
ROW_HEIGHT = 24
FIRST_TITLE_Y = 24
BETWEEN_PANELS = 52
STYLE = """text { font: 13px system-ui, sans-serif; fill: #1a1c1f } .m { fill: #5c636b } .h { font-weight: 600 }
.g { stroke: #e3e6e9 } .one { stroke: #5c636b; stroke-width: 2 } .z { stroke: #0072b2; stroke-width: 4 }
circle { fill: #0072b2 }
@media (prefers-color-scheme: dark) { text { fill: #e8eaed } .m { fill: #9aa3ac } .g { stroke: #2c3238 }
.one { stroke: #9aa3ac } .z { stroke: #56b4e9 } circle { fill: #56b4e9 } }"""


@dataclass(frozen=True)
class Row:
    label: str
    figures: str
    """The ratio in figures, or the reason why nothing was compared."""
    ratio: float | None
    low: float | None
    high: float | None
    """The ends of the ratio's interval; None if there were too few repeats for an interval."""
    cells: tuple[str, ...] = ()
    """Further figures, one for each of the picture's columns."""


@dataclass(frozen=True)
class Panel:
    title: str
    rows: Sequence[Row]


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis between two ratios."""

    lowest: float
    highest: float

    def x(self, ratio: float) -> float:
        """Return the place of a ratio in pixels. Ratios beyond an end of the axis are at that end."""
        inside = min(max(ratio, self.lowest), self.highest)
        share = math.log(inside / self.lowest) / math.log(self.highest / self.lowest)
        return round(LABEL_WIDTH + AXIS_WIDTH * share, 1)

    def ticks(self) -> list[float]:
        """Return the ratios that have a line and a number."""
        return [tick for tick in TICKS if self.lowest <= tick <= self.highest]


def axis_around(panels: Sequence[Panel]) -> Axis:
    """Return an axis that has every interval, and at least the ratios from 0.5 to 1."""
    lowest = 0.5
    highest = 1.0
    for panel in panels:
        for row in panel.rows:
            for ratio in (row.ratio, row.low, row.high):
                if ratio is not None:
                    lowest = min(lowest, ratio)
                    highest = max(highest, ratio)
    return Axis(lowest / 1.15, highest * 1.15)


def ratio_picture(panels: Sequence[Panel], axis: Axis, columns: Sequence[str] = ()) -> str:
    """Return the SVG; `columns` are the headings of the rows' further cells."""
    parts: list[str] = []
    y = FIRST_TITLE_Y
    for panel in panels:
        parts.append(f'<text class="h" x="0" y="{y}">{escape(panel.title)}</text>')
        for place, heading in enumerate(columns):
            parts.append(f'<text class="m" x="{_column_x(place)}" y="{y}" text-anchor="end">{escape(heading)}</text>')
        bottom = y + ROW_HEIGHT * len(panel.rows) + 8
        for tick in axis.ticks():
            line_class = "one" if tick == 1 else "g"
            x = axis.x(tick)
            parts.append(f'<line class="{line_class}" x1="{x}" x2="{x}" y1="{y + 8}" y2="{bottom}"/>')
            parts.append(f'<text class="m" x="{x}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>')
        for row in panel.rows:
            y += ROW_HEIGHT
            parts += _row(row, axis, y)
        y = bottom + BETWEEN_PANELS
    width = LABEL_WIDTH + AXIS_WIDTH + GAP + FIGURES_WIDTH + COLUMN_WIDTH * len(columns)
    svg_tag = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y - 28}" width="{width}">'
    return f"{svg_tag}<style>{STYLE}</style>{''.join(parts)}</svg>\n"


def _row(row: Row, axis: Axis, y: int) -> list[str]:
    """Return the elements of a row whose text stands on the line `y`."""
    parts = [f'<text class="m" x="0" y="{y}">{escape(row.label)}</text>']
    if row.low is not None and row.high is not None:
        parts.append(f'<line class="z" x1="{axis.x(row.low)}" x2="{axis.x(row.high)}" y1="{y - 4}" y2="{y - 4}"/>')
    if row.ratio is not None:
        parts.append(f'<circle cx="{axis.x(row.ratio)}" cy="{y - 4}" r="5.5"/>')
    parts.append(f'<text x="{LABEL_WIDTH + AXIS_WIDTH + GAP}" y="{y}">{escape(row.figures)}</text>')
    for place, cell in enumerate(row.cells):
        parts.append(f'<text class="m" x="{_column_x(place)}" y="{y}" text-anchor="end">{escape(cell)}</text>')
    return parts


def _column_x(place: int) -> int:
    """Return the right end of a column."""
    return LABEL_WIDTH + AXIS_WIDTH + GAP + FIGURES_WIDTH + COLUMN_WIDTH * (place + 1)
