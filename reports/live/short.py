"""Numbers in few characters."""

from __future__ import annotations

UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, ""))


def short(value: float, characters: int) -> str:
    """As it is where there is room, else three digits at most: 0.69, 8,000, 19.4k, 2.01M; four characters do."""
    rounded, whole = float(f"{value:.3g}"), f"{value:,.0f}"
    if rounded >= 100 and len(whole) <= characters:
        return whole
    unit, name = next((unit, name) for unit, name in UNITS if rounded >= unit)
    digits = rounded / (unit or 1.0)
    before_point = len(f"{digits:.0f}")
    decimals = min(3, characters - len(name) - 1) - before_point
    return f"{digits:.{max(decimals, 0)}f}{name}"
