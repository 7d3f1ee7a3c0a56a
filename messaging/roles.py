"""What a role is: who opens which ends of links, what he does once all are ready, and what he tells in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from transports.pattern import Pattern

if TYPE_CHECKING:
    from exchange.measurements import LogBuckets
    from messaging.player import Player


@dataclass(frozen=True)
class End:
    """One end of a link, opened before the start; `listens` where the other end connects to it."""

    url: str
    token: str
    listens: bool = False
    pattern: Pattern = Pattern.PAIR
    keys: tuple[str, ...] = ()
    """Of a topic: the one with which is published, or the patterns that are subscribed to."""


@dataclass(kw_only=True)
class Told:
    """What a role tells at its end; what it does not do stays 0 or empty."""

    sent: int = 0
    sent_checksum: int = 0
    received: int = 0
    received_checksum: int = 0
    wrong: dict[str, int] = field(default_factory=dict)
    """Messages that were not as they should be, by what was wrong."""
    first_ns: int = 0
    """Monotonic clock: once the first message was there (a receiver), or when it began to send (a sender)."""
    last_ns: int = 0
    """Once the last message was there, or the last was handed over."""
    latency: LogBuckets | None = None
    """From handing over to receipt; of who asks, to the answer's receipt."""
    stopped: str | None = None
    """Why it ended early, as a sentence."""
    usage: dict[str, Any] = field(default_factory=dict)
    """cpu_s, max_rss_bytes and context switches between start and end, filled in by the rig."""
    sockets: list[dict[str, Any]] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    """What its links noticed besides, an entry each."""

    @property
    def duration_s(self) -> float:
        return (self.last_ns - self.first_ns) / 1e9


class Part(Protocol):
    """What a role does between start and end; see experiments/bench/flow.py and bounce.py for those there are."""

    def __call__(self, player: Player) -> Told: ...


@dataclass(frozen=True)
class Role:
    """`name` is unique within a cell; roles of one kind begin with the same word, as in `consumer 3`."""

    name: str
    part: Part
    ends: tuple[End, ...]
    begins: bool = False
    """It sends first: it is started once all others are at work, so that nothing piles up before they are."""
    shares: Sharing | None = None


@dataclass(frozen=True)
class Sharing:
    """Who shares a queue, which deals no exact quotas, or an exchange: receivers stop once they have `total` together.

    Of dozens of publishers one may be held back by a broker for long, and is patient as long as the others get on.
    """

    name: str
    total: int
