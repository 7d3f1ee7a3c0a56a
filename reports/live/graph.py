"""Values as a line of blocks, each of eight heights."""

from __future__ import annotations

import math
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.:-=+*#"
"""For a terminal whose encoding has no blocks."""


def graph(values: Sequence[float | None], top: float, blocks: str = BLOCKS) -> str:
    """From 0, the lowest block, to `top`; a blank where nothing was measured."""
    return "".join(" " if value is None else blocks[_height(value, top)] for value in values)


def _height(value: float, top: float) -> int:
    return min(max(math.ceil(len(BLOCKS) * value / top) - 1, 0), len(BLOCKS) - 1) if top > 0 else 0
