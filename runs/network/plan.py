"""What the holder is told."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Plan:
    roles: list[str]
    unshaped: list[str]
    """Roles whose link is as fast as veth is, whatever the others' are."""
    mechanism: str
    """veth, netem or wire."""
    rate_bit_per_s: int | None
    delay_us: float | None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        return cls(**json.loads(text))
