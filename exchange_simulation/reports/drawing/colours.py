"""The colours of every page and picture: one for each transport, others for roles, greys for the rest.

The code names a colour: exchange:ink. A drawing for a page serves light and dark, so it is drawn with stand-in colours
(#010203, #010204, ...), and a CSS variable then takes the place of each stand-in. A drawing in a file has the light
colours. The page's CSS variables come from the same two tables, LIGHT and DARK.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import cycle

from transports.registry import built_in

INK = "exchange:ink"
MUTED = "exchange:muted"
GRID = "exchange:grid"
BLUE = "exchange:blue"
ORANGE = "exchange:orange"
GREEN = "exchange:green"
PURPLE = "exchange:purple"
VIOLET = "exchange:violet"
OLIVE = "exchange:olive"
BROWN = "exchange:brown"
SLATE = "exchange:slate"
TEAL = "exchange:teal"
RED = "exchange:red"
GOLD = "exchange:gold"
NAVY = "exchange:navy"

TRANSPORT_COLOURS = {name: f"exchange:{transport.colour}" for name, transport in built_in().items() if transport.colour}
"""By transport, the name of the colour that its declaration says."""
ROLE_COLOURS = {"gateway": VIOLET, "engine": OLIVE, "broker": BROWN, "reporter": SLATE}
SPARE_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, BROWN, VIOLET, OLIVE, SLATE)
"""The colours of lines whose transport has none, in the order in which they are used."""

LIGHT = {
    INK: "#1a1c1f",
    MUTED: "#5c636b",
    GRID: "#e3e6e9",
    BLUE: "#0072b2",
    ORANGE: "#c04a00",
    GREEN: "#00795a",
    PURPLE: "#a8457e",
    VIOLET: "#6a4fc4",
    OLIVE: "#66700a",
    BROWN: "#875a28",
    SLATE: "#4a6274",
    TEAL: "#007a85",
    RED: "#b3262e",
    GOLD: "#8a6d00",
    NAVY: "#26418f",
}
DARK = {
    INK: "#e8eaed",
    MUTED: "#9aa3ac",
    GRID: "#2c3238",
    BLUE: "#56b4e9",
    ORANGE: "#f0914a",
    GREEN: "#35c49a",
    PURPLE: "#dd8fbb",
    VIOLET: "#a996f5",
    OLIVE: "#b3bf4a",
    BROWN: "#cfa36b",
    SLATE: "#8fb0c7",
    TEAL: "#4fc4cf",
    RED: "#f27d7d",
    GOLD: "#d9b93b",
    NAVY: "#8aa4f2",
}

STAND_INS = {name: f"#0102{place:02x}" for place, name in enumerate(LIGHT, start=3)}
"""The stand-in of each colour: a colour that no drawing has otherwise, so it can be found in the SVG."""
CSS_COLOURS = {
    stand_in: "currentColor" if name == INK else f"var(--{name.removeprefix('exchange:')})"
    for name, stand_in in STAND_INS.items()
}
"""What the page has in place of each stand-in."""


def transport_colour(transport: str) -> str | None:
    """Return the colour of a transport, given its name or URL; None if it has none. Variants share a colour."""
    name, *_ = re.split(r"[:?+]", transport, maxsplit=1)
    return TRANSPORT_COLOURS.get(name)


def line_colours(transports: Mapping[str, str]) -> dict[str, str]:
    """Return a colour for each line of a chart, given the transport of each.

    The first line of a transport has the transport's colour; each other line has the next spare colour that is free.
    """
    colours: dict[str, str] = {}
    for name, transport in transports.items():
        colour = transport_colour(transport)
        if colour and colour not in colours.values():
            colours[name] = colour
    free_colours = [colour for colour in SPARE_COLOURS if colour not in colours.values()]
    spare = cycle(free_colours or [MUTED])
    for name in transports:
        if name not in colours:
            colours[name] = next(spare)
    return {name: colours[name] for name in transports}


def css_variables(palette: Mapping[str, str]) -> dict[str, str]:
    """Return the value of each CSS variable of a palette, such as --muted."""
    return {f"--{name.removeprefix('exchange:')}": colour for name, colour in palette.items()}


def with_css_colours(svg: str) -> str:
    """Return a drawing with a CSS variable in place of each stand-in."""
    return re.sub("|".join(CSS_COLOURS), lambda match: CSS_COLOURS[match.group()], svg)
