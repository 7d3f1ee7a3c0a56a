"""SVG of matplotlib, made fit for the middle of a page: colours by CSS, ids of its own, half of the bytes."""

from __future__ import annotations

import re

from exchange_simulation.reports.drawing.colours import with_css_colours

HEAD_END = "</style>\n </defs>"
IDS_IN_USE = "figure_1|matplotlib.axis_|(?:line|part|label)-|mask|image|[pm][0-9a-f]{10}"
"""The ids that the page's script looks for, and those that a drawing itself refers to."""
UNUSED_ID = rf' id="(?!\w+-(?:{IDS_IN_USE}))[^"]*"'
FONT_FAMILY = " font-family: [^;]*;"
NO_ROTATION = r' transform="rotate\(-0 [^"]*"'
THIRD_DECIMAL_AND_ON = r'(\d+\.\d{2})\d+(?![^<>"]{0,40}</text>)'
"""Decimals of a place in the drawing; a number that is text stays whole."""
ZEROS_AT_END = r'(\d\.[1-9]?)0+(?=[ "])'
INVISIBLE = r'<path d="[^"]*" style="fill: none"/>|<g/>'
MARKS_IN_GROUP = r"<g( [^>]*)?>((?:<use [^>]*/>)+)</g>"
OPEN_LINES = r'(?:<path d="[^"]*" clip-path="[^"]*" style="fill: none[^"]*"/>){2,}'
GROUP_OF_ONE = r"<g>(<text[^>]*>[^<]*</text>|<(?:path|use)[^>]*/>)</g>"
TICK = r'(<use [^>]*?) style="fill: var\(--grid\); stroke: var\(--grid\); stroke-width: 0.8"'
"""A tick's mark; the shape that it refers to has these colours already."""
GRID_LINE = r'" clip-path="[^"]*" (style="fill: none; stroke: var\(--grid\))'
USUAL_TEXT = ("font-size: 11.5px; ", "; fill: var(--muted)")
"""The look of a text that page.css gives to all."""


def page_svg(svg: str, tint: str, prefix: str) -> str:
    """Return a drawing of matplotlib as a page has it: without head, in CSS colours, every id with this prefix.

    `tint` is the colour of images.
    """
    body = _with_tinted_images(_without_head(svg), tint)
    body = with_css_colours(_with_prefixed_ids(body, prefix))
    return _slim(body)


def _without_head(svg: str) -> str:
    """Remove prolog, metadata and the style element, which would apply to the whole page."""
    return svg[svg.index(HEAD_END) + len(HEAD_END) :]


def _with_tinted_images(svg: str, tint: str) -> str:
    """Replace each image by its tint with the image's opacity: an image has fixed colours."""
    mask = (
        r'<mask id="mask\1" style="mask-type: alpha" maskUnits="userSpaceOnUse" x="0" y="0" width="100%" height="100%">'
        rf'\g<0></mask><rect width="100%" height="100%" fill="{tint}" mask="url(#mask\1)"/>'
    )
    return re.sub(r'<image [^>]*\bid="([^"]*)"[^>]*/>', mask, svg)


def _with_prefixed_ids(svg: str, prefix: str) -> str:
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    return re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)


def _slim(svg: str) -> str:
    """Return the picture in half of the bytes: without ids that nothing looks for, repeated styles, needless digits."""
    for needless in (UNUSED_ID, FONT_FAMILY, NO_ROTATION):
        svg = re.sub(needless, "", svg)
    svg = re.sub(THIRD_DECIMAL_AND_ON, r"\1", svg)
    svg = re.sub(ZEROS_AT_END, _without_point_at_end, svg)
    for look in USUAL_TEXT:
        svg = re.sub(rf'(<text style="[^"]*?){re.escape(look)}', r"\1", svg)
    svg = re.sub(r"\s*\n\s*", " ", svg)
    svg = svg.replace("> <", "><").replace(' "', '"').replace("xlink:href", "href")
    svg = re.sub(MARKS_IN_GROUP, _style_of_group, svg)
    svg = re.sub(INVISIBLE, "", svg)
    svg = re.sub(OPEN_LINES, _one_path, svg)
    for _ in range(2):  # a tick has two groups around it
        svg = re.sub(GROUP_OF_ONE, r"\1", svg)
    svg = re.sub(GRID_LINE, r'" \1', svg)
    svg = re.sub(TICK, r"\1", svg)
    return re.sub(r' style="[^"]*"', _without_blanks, svg)


def _without_point_at_end(number: re.Match[str]) -> str:
    return number[1].removesuffix(".")


def _without_blanks(style: re.Match[str]) -> str:
    return style[0].replace("; ", ";").replace(": ", ":")


def _style_of_group(marks: re.Match[str]) -> str:
    """Move the style of marks that look alike to the group around them; none is outside of the axes."""
    attributes = marks[1] or ""
    uses = marks[2]
    styles = set(re.findall(r' style="[^"]*"', uses))
    if len(styles) != 1:
        return marks[0]
    style = styles.pop()
    attributes = re.sub(' clip-path="[^"]*"', "", attributes)
    return f"<g{attributes}{style}>{uses.replace(style, '')}</g>"


def _one_path(lines: re.Match[str]) -> str:
    """Join open lines beside each other that look alike, as whiskers do, into one path."""
    looks = set(re.findall(r'" (clip-path[^>]*)/>', lines[0]))
    if len(looks) != 1:
        return lines[0]
    points = " ".join(re.findall(r'd="([^"]*)"', lines[0]))
    return f'<path d="{points}" {looks.pop()}/>'
