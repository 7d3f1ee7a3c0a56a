"""A matplotlib figure as SVG for the middle of an HTML page."""

from __future__ import annotations

import io
import re

from markupsafe import Markup, escape
from matplotlib.figure import Figure

from reports.drawing.canvas import HEIGHT, WIDTH
from reports.drawing.colours import BLUE, STAND_INS, with_css_colours


def inline_svg(figure: Figure, name: str, title: str) -> Markup:
    """Text stays text, in the page's font; `name` goes before every id, since figures share one page."""
    svg = io.StringIO()
    figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    body = with_css_colours(_own_ids(_masking(_without_head(svg.getvalue())), name))
    body = re.sub(r" font-family: [^;]*;", "", body)
    head = f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {WIDTH} {HEIGHT}">'
    return Markup(head + body)


def _without_head(svg: str) -> str:
    """No prolog, no metadata, and no style element, which would reach the whole page."""
    end_of_style = "</style>\n </defs>"
    return svg[svg.index(end_of_style) + len(end_of_style) :]


def _masking(svg: str) -> str:
    """An image has colours of its own, so only its opacity is used: for the page's blue to shine through."""
    masked = (
        r'<mask id="mask\1" style="mask-type: alpha" maskUnits="userSpaceOnUse" x="0" y="0" width="100%" height="100%">'
        rf'\g<0></mask><rect width="100%" height="100%" fill="{STAND_INS[BLUE]}" mask="url(#mask\1)"/>'
    )
    return re.sub(r'<image [^>]*\bid="([^"]*)"[^>]*/>', masked, svg)


def _own_ids(svg: str, name: str) -> str:
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    return re.sub(r'(url\(|href=")#', rf"\1#{name}-", svg)
