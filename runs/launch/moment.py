"""How far a run is, as its gateways say once a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Moment:
    """Orders of all gateways so far, and what our broker, if there is one, has used since the clock started."""

    sent: int
    answered: int
    broker_cpu_s: float | None = None


OnSecond = Callable[[Moment], None]


class Together:
    """What several gateways say, told once a second: when the last of them has, or one speaks again before."""

    def __init__(self, gateways: int) -> None:
        self._gateways = gateways
        self._said: dict[str, tuple[int, int]] = {}
        self._waiting: set[str] = set()

    def take(self, gateway: str, sent: int, answered: int) -> tuple[int, int] | None:
        """(sent, answered) of all, where it is time to tell."""
        is_time = gateway in self._waiting
        if is_time:
            self._waiting.clear()
        self._said[gateway] = sent, answered
        self._waiting.add(gateway)
        if len(self._waiting) == self._gateways:
            is_time = True
            self._waiting.clear()
        return (sum(s for s, _ in self._said.values()), sum(a for _, a in self._said.values())) if is_time else None
