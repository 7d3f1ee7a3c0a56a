"""Stand-ins for colours, which become the page's CSS variables: one drawing serves light and dark."""

from __future__ import annotations

import re

INK, MUTED, GRID = "#010203", "#010204", "#010205"
BLUE, ORANGE, GREEN, PURPLE = "#010206", "#010207", "#010208", "#010209"

CSS_COLOURS = {
    INK: "currentColor", MUTED: "var(--muted)", GRID: "var(--grid)",
    BLUE: "var(--blue)", ORANGE: "var(--orange)", GREEN: "var(--green)", PURPLE: "var(--purple)",
}  # fmt: skip


def with_css_colours(svg: str) -> str:
    return re.sub("|".join(CSS_COLOURS), lambda match: CSS_COLOURS[match.group()], svg)
