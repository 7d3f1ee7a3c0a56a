"""Sessions: the hello that opens one, and what two hellos must agree on."""

from __future__ import annotations

import time
from dataclasses import dataclass

from exchange.measurements import Source
from exchange.messages import PROTOCOL_VERSION, Hello
from exchange.settings import POLICIES


class Disagreement(Exception):
    """The two ends of a session were started with different settings."""


@dataclass(frozen=True)
class Terms:
    """What both ends of a session must have been given alike."""

    run: int
    policy: str
    packing: int
    max_price: int

    def hello(self, source: Source) -> Hello:
        """Ours, with a pair of wall and monotonic time."""
        return Hello(
            PROTOCOL_VERSION, self.run, source, POLICIES[self.policy], self.packing, self.max_price,
            wall_ns=time.time_ns(), monotonic_ns=time.monotonic_ns(),
        )  # fmt: skip

    def agree(self, theirs: Hello) -> None:
        """Disagreement, naming the option and both values, unless the other's hello says the same."""
        ours = self.hello(Source.GATEWAY)
        for name in ("version", "run", "policy", "packing", "max_price"):
            here, there = getattr(ours, name), getattr(theirs, name)
            if here != there:
                sources = {source.value: source.name.lower() for source in Source}
                who = sources.get(theirs.source, "a stranger")
                raise Disagreement(
                    f"{who} was started with {_typed(name)} {_value(name, there)}, "
                    f"this end with {_value(name, here)}: give both the same"
                )


def _typed(name: str) -> str:
    return "protocol version" if name == "version" else f"--{name.replace('_', '-')}"


def _value(name: str, number: int) -> str:
    """A policy by its name, a run by its number in hex, as the spool has it."""
    if name == "policy":
        return {number: policy for policy, number in POLICIES.items()}.get(number, f"unknown ({number})")
    return f"{number:016x}" if name == "run" else str(number)
