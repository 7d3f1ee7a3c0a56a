"""A figure: a chart with title and caption, as inline SVG of a page, and as files for elsewhere."""

from __future__ import annotations

import csv
import io
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from exchange_simulation.launching.errors import writing
from exchange_simulation.launching.files import write_whole
from exchange_simulation.reports.drawing.canvas import HEIGHT, POINTS_PER_INCH, WIDTH, page_style
from exchange_simulation.reports.drawing.chart import Chart, Numbers
from exchange_simulation.reports.drawing.colours import LIGHT, MUTED, STAND_INS
from exchange_simulation.reports.drawing.page_svg import page_svg

WITHOUT_DATE: dict[str, Any] = {"Date": None}
OPTIONS_BY_FORMAT: dict[str, dict[str, Any]] = {"svg": {"metadata": WITHOUT_DATE}, "png": {"dpi": 216}}
MARGIN: dict[str, Any] = {"facecolor": "white", "bbox_inches": "tight", "pad_inches": 0.12}


@dataclass(frozen=True)
class Figure:
    title: str
    chart: Chart
    caption: str
    short_name: str = ""

    @property
    def name(self) -> str:
        """Return the name of the figure's files and of its drawing: its short name, or else one made of its title."""
        return self.short_name or re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Drawing:
    """A figure on a page; `svg` is None if nothing was measured."""

    name: str
    title: str
    svg: Markup | None
    caption: str


def drawings(figures: Iterable[Figure]) -> list[Drawing]:
    """Return the figures as a page has them. `figures` may be a generator that draws: the page's style is set while it
    is iterated.
    """
    with page_style():
        return [drawing_of(figure) for figure in figures]


def drawing_of(figure: Figure) -> Drawing:
    """Return one figure's drawing; the page's style must be set."""
    return Drawing(figure.name, figure.title, inline_svg(figure.chart, figure.name, figure.title), figure.caption)


def inline_svg(chart: Chart, name: str, title: str) -> Markup:
    """Return SVG for the middle of a page: text in the page's font, every id prefixed with a short hash of `name`."""
    svg = io.StringIO()
    chart.figure.savefig(svg, format="svg", transparent=True, metadata=WITHOUT_DATE)
    tint = STAND_INS.get(chart.tint, STAND_INS[MUTED])  # a placeholder, which page_svg replaces by a CSS variable
    prefix = f"f{zlib.crc32(name.encode()):x}"
    behind_opening_tag = page_svg(svg.getvalue(), tint, prefix)
    data = f'data-x="{_x_scale(chart)}" data-y="{_y_scale(chart)}"'
    if chart.hover:
        data += _json_attribute("values", _hover_points(chart, chart.hover))
    if chart.cells is not None:
        data += _json_attribute("cells", chart.cells)
    opening_tag = f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {WIDTH} {HEIGHT}" {data}>'
    return Markup(opening_tag + behind_opening_tag)


def _json_attribute(name: str, value: Mapping[str, Any]) -> str:
    """Return an attribute for the page's script, in single quotes, since JSON has double ones."""
    text = json.dumps(value, separators=(",", ":"))
    for character in "&<'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f" data-{name}='{text}'"


def _hover_points(chart: Chart, hover: Numbers) -> dict[str, list[list[float]]]:
    """Return each series' points for the page's script: the place in the drawing, x, then the numbers to show."""
    x_places = chart.x_places or {}
    points: dict[str, list[list[float]]] = {}
    for series, x, *numbers in hover.rows:
        assert isinstance(x, float | int)
        x_on_axis = x_places.get(x, x)
        any_y = 1.0  # not 0, which a log axis does not have
        pixels, _ = chart.axes.transData.transform((x_on_axis, any_y))
        place = round(float(pixels) * POINTS_PER_INCH / chart.figure.dpi, 1)
        rounded = [float(f"{number:.5g}") for number in numbers if isinstance(number, float | int)]
        points.setdefault(str(series), []).append([place, x, *rounded])
    return points


def _x_scale(chart: Chart) -> str:
    """Return for the page's script the x axis' scale, the values at its ends, and their places in the drawing."""
    box = chart.axes.get_position()
    low, high = chart.axes.get_xlim()
    scale = chart.x_scale or chart.axes.get_xscale()
    return f"{scale} {low:.10g} {high:.10g} {box.x0 * WIDTH:.10g} {box.x1 * WIDTH:.10g}"


def _y_scale(chart: Chart) -> str:
    """Return the same of the y axis; places in a drawing count from its top."""
    box = chart.axes.get_position()
    low, high = chart.axes.get_ylim()
    scale = chart.axes.get_yscale()
    return f"{scale} {low:.10g} {high:.10g} {(1 - box.y0) * HEIGHT:.10g} {(1 - box.y1) * HEIGHT:.10g}"


def write_figures(folder: Path, figures: Iterable[Figure]) -> Path:
    """Write each as FOLDER/figures/NAME.svg and .png in light colours, and NAME.csv with its numbers.

    `figures` may be a generator that draws: the files' style is set while it is iterated. UserError if a file cannot be
    written.
    """
    files = folder / "figures"
    with writing(files):
        files.mkdir(exist_ok=True)
    with page_style(LIGHT):
        for figure in figures:
            _write(files / figure.name, figure.title, figure.chart)
    return files


def _write(path: Path, title: str, chart: Chart) -> None:
    points_above_drawing = 14
    chart.figure.text(2 / WIDTH, 1 + points_above_drawing / HEIGHT, title, fontsize="large", fontweight="bold")
    for file_format, options in OPTIONS_BY_FORMAT.items():
        picture = io.BytesIO()
        chart.figure.savefig(picture, format=file_format, **MARGIN, **options)
        write_whole(path.with_name(f"{path.name}.{file_format}"), picture.getvalue())
    write_whole(path.with_name(f"{path.name}.csv"), csv_of(chart.numbers).encode())


def csv_of(numbers: Numbers) -> str:
    """Return the table as CSV; a cell without a value is empty."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(numbers.columns)
    table.writerows(numbers.rows)
    return text.getvalue()
