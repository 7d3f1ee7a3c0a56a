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
from exchange_simulation.reports.drawing.canvas import HEIGHT, WIDTH, page_style
from exchange_simulation.reports.drawing.chart import Chart, Numbers
from exchange_simulation.reports.drawing.colours import LIGHT, MUTED, STAND_INS, with_css_colours

PICTURES: dict[str, dict[str, Any]] = {"svg": {"metadata": {"Date": None}}, "png": {"dpi": 216}}
AROUND: dict[str, Any] = {"facecolor": "white", "bbox_inches": "tight", "pad_inches": 0.12}


@dataclass(frozen=True)
class Figure:
    title: str
    chart: Chart
    caption: str
    short_name: str = ""

    @property
    def name(self) -> str:
        """Return the name of its files and the prefix of its ids on the page; from the title if it has no short one."""
        return self.short_name or re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Drawing:
    """A figure on a page; `svg` is None if nothing was measured."""

    name: str
    title: str
    svg: Markup | None
    caption: str


def drawings(figures: Iterable[Figure]) -> list[Drawing]:
    """Return the figures as a page has them. `figures` is iterated in the page's style, so it may draw as it goes."""
    with page_style():
        return [drawing_of(figure) for figure in figures]


def drawing_of(figure: Figure) -> Drawing:
    """Return one figure's drawing; the page's style must be set."""
    return Drawing(figure.name, figure.title, inline_svg(figure.chart, figure.name, figure.title), figure.caption)


def inline_svg(chart: Chart, name: str, title: str) -> Markup:
    """Return SVG for the middle of a page: text in the page's font, every id prefixed with a short hash of `name`."""
    svg = io.StringIO()
    chart.figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    tint = STAND_INS.get(chart.tint, STAND_INS[MUTED])
    prefix = f"f{zlib.crc32(name.encode()):x}"
    body = with_css_colours(_own_ids(_masking(_without_head(svg.getvalue()), tint), prefix))
    body = _slim(body)
    axes = " ".join(f'data-{which}="{scale}"' for which, scale in _scales(chart).items())
    axes += _data("values", _values(chart, chart.hover) if chart.hover else None) + _data("cells", chart.cells)
    head = f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {WIDTH} {HEIGHT}" {axes}>'
    return Markup(head + body)


def _data(name: str, value: Mapping[str, Any] | None) -> str:
    """Return an attribute for the page's script, empty for None; in single quotes, since JSON has double ones."""
    text = json.dumps(value, separators=(",", ":"))
    for character in "&<'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return "" if value is None else f" data-{name}='{text}'"


def _values(chart: Chart, hover: Numbers) -> dict[str, list[list[float]]]:
    """Return each series' points for the page's script: the place in the drawing, then the numbers to show."""
    places = chart.x_places or {}
    points: dict[str, list[list[float]]] = {}
    for series, x, *numbers in hover.rows:
        assert isinstance(x, float | int)
        in_drawing = float(chart.axes.transData.transform((places.get(x, x), 1.0))[0]) * 72 / chart.figure.dpi
        shown = [float(f"{number:.5g}") for number in numbers if isinstance(number, float | int)]
        points.setdefault(str(series), []).append([round(in_drawing, 1), x, *shown])
    return points


def _scales(chart: Chart) -> dict[str, str]:
    """Return for the page's script each axis' scale, the values at its ends, and their places in the drawing."""
    axes = chart.axes
    box = chart.axes.get_position()
    places = {"x": (box.x0 * WIDTH, box.x1 * WIDTH), "y": ((1 - box.y0) * HEIGHT, (1 - box.y1) * HEIGHT)}
    kinds = {"x": chart.x_scale or axes.get_xscale(), "y": axes.get_yscale()}
    limits = {"x": axes.get_xlim(), "y": axes.get_ylim()}
    return {
        which: " ".join([kinds[which], *(f"{number:.10g}" for number in (*limits[which], *places[which]))])
        for which in kinds
    }


def _without_head(svg: str) -> str:
    """Remove prolog, metadata and the style element, which would apply to the whole page."""
    end_of_style = "</style>\n </defs>"
    return svg[svg.index(end_of_style) + len(end_of_style) :]


LOOKED_FOR = "figure_1|matplotlib.axis_|(?:line|part|label)-|mask|image|[pm][0-9a-f]{10}"
"""The ids that the page's script looks for, and those that a drawing itself refers to."""
INVISIBLE = r'<path d="[^"]*" style="fill: none"/>|<g/>'
TICK = r'(<use [^>]*?) style="fill: var\(--grid\); stroke: var\(--grid\); stroke-width: 0.8"'
"""A tick's mark; the shape that it refers to has these colours already."""
GRID_LINE = r'" clip-path="[^"]*" (style="fill: none; stroke: var\(--grid\))'
USUAL_TEXT = "font-size: 11.5px; ", "; fill: var(--muted)"
"""The look of a text that page.css gives to all."""


def _slim(svg: str) -> str:
    """Return the picture in half of the bytes: without ids that nothing looks for, repeated styles, needless digits."""
    needless = rf' id="(?!\w+-(?:{LOOKED_FOR}))[^"]*"| font-family: [^;]*;| transform="rotate\(-0 [^"]*"'
    svg = re.sub(r'(\d+\.\d{2})\d+(?![^<>"]{0,40}</text>)', r"\1", re.sub(needless, "", svg))
    svg = re.sub(r'(\d\.[1-9]?)0+(?=[ "])', lambda number: number[1].removesuffix("."), svg)
    for look in USUAL_TEXT:
        svg = re.sub(rf'(<text style="[^"]*?){re.escape(look)}', r"\1", svg)
    svg = re.sub(r"\s*\n\s*", " ", svg).replace("> <", "><").replace(' "', '"').replace("xlink:href", "href")
    svg = re.sub(INVISIBLE, "", re.sub(r"<g( [^>]*)?>((?:<use [^>]*/>)+)</g>", _one_style, svg))
    svg = re.sub(r'(?:<path d="[^"]*" clip-path="[^"]*" style="fill: none[^"]*"/>){2,}', _one_path, svg)
    for _ in range(2):  # a tick has two groups around it
        svg = re.sub(r"<g>(<text[^>]*>[^<]*</text>|<(?:path|use)[^>]*/>)</g>", r"\1", svg)
    svg = re.sub(TICK, r"\1", re.sub(GRID_LINE, r'" \1', svg))
    return re.sub(r' style="[^"]*"', lambda style: style[0].replace("; ", ";").replace(": ", ":"), svg)


def _one_style(marks: re.Match[str]) -> str:
    """Move the style of marks that look alike to the group around them; none is outside of the axes."""
    styles = set(re.findall(r' style="[^"]*"', marks[2]))
    if len(styles) != 1:
        return marks[0]
    style = styles.pop()
    others = re.sub(' clip-path="[^"]*"', "", marks[1] or "")
    return f"<g{others}{style}>{marks[2].replace(style, '')}</g>"


def _one_path(lines: re.Match[str]) -> str:
    """Join open lines beside each other that look alike, as whiskers do, into one path."""
    looks = set(re.findall(r'" (clip-path[^>]*)/>', lines[0]))
    if len(looks) != 1:
        return lines[0]
    drawn = " ".join(re.findall(r'd="([^"]*)"', lines[0]))
    return f'<path d="{drawn}" {looks.pop()}/>'


def _masking(svg: str, tint: str) -> str:
    """Replace each image by its tint with the image's opacity: an image has fixed colours."""
    masked = (
        r'<mask id="mask\1" style="mask-type: alpha" maskUnits="userSpaceOnUse" x="0" y="0" width="100%" height="100%">'
        rf'\g<0></mask><rect width="100%" height="100%" fill="{tint}" mask="url(#mask\1)"/>'
    )
    return re.sub(r'<image [^>]*\bid="([^"]*)"[^>]*/>', masked, svg)


def _own_ids(svg: str, prefix: str) -> str:
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    return re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)


def write_figures(folder: Path, figures: Iterable[Figure]) -> Path:
    """Write each as FOLDER/figures/NAME.svg and .png in light colours, and NAME.csv with its numbers.

    `figures` is iterated in the files' style, so it may draw as it goes. UserError where a file cannot be written.
    """
    files = folder / "figures"
    with writing(files):
        files.mkdir(exist_ok=True)
    with page_style(LIGHT):
        for figure in figures:
            _write(files / figure.name, figure.title, figure.chart)
    return files


def _write(path: Path, title: str, chart: Chart) -> None:
    chart.figure.text(2 / WIDTH, 1 + 14 / HEIGHT, title, fontsize="large", fontweight="bold")
    for kind, how in PICTURES.items():
        picture = io.BytesIO()
        chart.figure.savefig(picture, format=kind, **AROUND, **how)
        write_whole(path.with_name(f"{path.name}.{kind}"), picture.getvalue())
    write_whole(path.with_name(f"{path.name}.csv"), csv_of(chart.numbers).encode())


def csv_of(numbers: Numbers) -> str:
    """Return the table as CSV; a cell without a value is empty."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(numbers.columns)
    table.writerows(numbers.rows)
    return text.getvalue()
