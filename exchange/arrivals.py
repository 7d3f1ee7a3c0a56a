"""When orders arrive, as a user says it: one word, with its parameters behind a colon."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_BURST = 1_000_000
LEAST_SHARE = 0.001
FORMS = (
    f"fixed, poisson, bursts:ORDERS (1 to {MAX_BURST:,}, as bursts:100), "
    f"ramp:FROM..TO (shares of the rate, {LEAST_SHARE} to 1, as ramp:0.1..1), or recorded (as beside a tape)"
)

_FORM = re.compile(
    r"(?P<plain>fixed|poisson|recorded)|bursts:(?P<burst>\d{1,7})|ramp:(?P<first>[\d.]+?)\.\.(?P<last>[\d.]+)"
)


@dataclass(frozen=True)
class Arrivals:
    """A schedule without its rate."""

    kind: str = "fixed"
    burst: int = 1
    """Orders that are due at once."""
    shares: tuple[float, float] = (1.0, 1.0)
    """Of the rate, when the run starts and when it ends."""

    @classmethod
    def parse(cls, text: object) -> Arrivals:
        """ValueError where it is none of FORMS."""
        found = _FORM.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ValueError(FORMS)
        if found["plain"]:
            return cls(found["plain"])
        if found["burst"]:
            return cls("bursts", burst=int(found["burst"]))
        return cls("ramp", shares=(float(found["first"]), float(found["last"])))

    def __post_init__(self) -> None:
        if not 1 <= self.burst <= MAX_BURST or not all(LEAST_SHARE <= share <= 1 for share in self.shares):
            raise ValueError(FORMS)

    @property
    def mean_share(self) -> float:
        """Of the rate, over the whole run."""
        return sum(self.shares) / 2


def is_steady(text: object) -> bool:
    """Whether the mean rate of arrivals is the same in every second."""
    return Arrivals.parse(text).kind not in {"ramp", "recorded"}
