"""Sessions: the hello that opens one, and what two hellos must agree on."""

from __future__ import annotations

import time
from dataclasses import dataclass

from exchange.instances import named, tagged, untagged
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
    instance: int = 1
    """Of the pair that the two are."""

    def hello(self, source: Source) -> Hello:
        """Ours, with a pair of wall and monotonic time."""
        return Hello(
            PROTOCOL_VERSION, self.run, tagged(source, self.instance),
            POLICIES[self.policy], self.packing, self.max_price,
            wall_ns=time.time_ns(), monotonic_ns=time.monotonic_ns(),
        )  # fmt: skip

    def agree(self, theirs: Hello) -> None:
        """Disagreement, naming the option and both values, unless the other's hello says the same."""
        ours, theirs_said = (_said(hello) for hello in (self.hello(Source.GATEWAY), theirs))
        for name, here in ours.items():
            if here != (there := theirs_said[name]):
                raise Disagreement(
                    f"{source_of(theirs) or 'a stranger'} was started with {_typed(name)} {_value(name, there)}, "
                    f"this end with {_value(name, here)}: give both the same"
                )


def source_of(hello: Hello) -> str | None:
    """Who says it, as records have it; None where it is no source of ours."""
    number, instance = untagged(hello.source)
    return named(Source(number).name.lower(), instance) if number in list(Source) else None


def _said(hello: Hello) -> dict[str, int]:
    """What both must say alike."""
    terms = {name: getattr(hello, name) for name in ("version", "run", "policy", "packing", "max_price")}
    return {**terms, "instance": untagged(hello.source)[1]}


def _typed(name: str) -> str:
    return "protocol version" if name == "version" else f"--{name.replace('_', '-')}"


def _value(name: str, number: int) -> str:
    """A policy by its name, a run by its number in hex, as the spool has it."""
    if name == "policy":
        return {number: policy for policy, number in POLICIES.items()}.get(number, f"unknown ({number})")
    return f"{number:016x}" if name == "run" else str(number)
