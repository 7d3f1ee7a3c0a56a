"""When a run will end."""

from __future__ import annotations

from exchange.settings import RunSettings


def left_s(settings: RunSettings, answered: int, elapsed_s: float) -> float | None:
    """At the pace so far, and by the clock where that ends it; None while nobody can tell."""
    ends: list[float] = []
    if answered and elapsed_s > 0:
        ends.append((settings.pairs * settings.order_limit - answered) * elapsed_s / answered)
    if settings.duration_s is not None:
        ends.append(settings.duration_s - elapsed_s)
    return max(min(ends), 0.0) if ends else None


def said(seconds: float) -> str:
    """6 s, 3 min 20 s, 2 h 5 min."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
