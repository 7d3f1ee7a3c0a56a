"""How far a run is, as its gateway says once a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Moment:
    """Orders so far, and what the broker, where there is one of ours, has used since the clock started."""

    sent: int
    answered: int
    broker_cpu_s: float | None = None


OnSecond = Callable[[Moment], None]
