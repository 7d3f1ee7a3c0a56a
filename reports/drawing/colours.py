"""The page's colours by name, and what a name stands for: a CSS variable on the page, its light value in a file.

On the page one drawing serves light and dark: it is drawn in stand-ins, which become variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from matplotlib.colors import get_named_colors_mapping

INK, MUTED, GRID = "exchange:ink", "exchange:muted", "exchange:grid"
BLUE, ORANGE, GREEN, PURPLE = "exchange:blue", "exchange:orange", "exchange:green", "exchange:purple"

STAND_INS = {
    INK: "#010203", MUTED: "#010204", GRID: "#010205",
    BLUE: "#010206", ORANGE: "#010207", GREEN: "#010208", PURPLE: "#010209",
}  # fmt: skip
LIGHT = {
    INK: "#1a1c1f", MUTED: "#5c636b", GRID: "#e3e6e9",
    BLUE: "#0072b2", ORANGE: "#c04a00", GREEN: "#00795a", PURPLE: "#a8457e",
}  # fmt: skip
"""As page.css has them."""

CSS_COLOURS = {
    stand_in: "currentColor" if name == INK else f"var(--{name.removeprefix('exchange:')})"
    for name, stand_in in STAND_INS.items()
}


def paint(palette: Mapping[str, str]) -> None:
    """Let matplotlib take the names for these colours from now on."""
    named = get_named_colors_mapping()
    for name, colour in palette.items():
        named[name] = colour  # not by update, which would leave what matplotlib remembers of the name


def with_css_colours(svg: str) -> str:
    return re.sub("|".join(CSS_COLOURS), lambda match: CSS_COLOURS[match.group()], svg)


paint(STAND_INS)
