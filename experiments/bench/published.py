"""One publisher and those who subscribe to him: the parts, and what is wrong with what they have."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from experiments.bench.answer import wrong_with
from experiments.bench.flow import Consume, Publish
from experiments.bench.player import OPEN_NS, Player
from experiments.bench.roles import End, Role, Told
from transports.base import PeerGone


@dataclass(frozen=True)
class PublishToAll(Publish):
    """Begins once all its subscribers are there; each replies once it has everything."""

    def __call__(self, player: Player) -> Told:
        try:
            player.link.await_peers(self.replies, time.monotonic_ns() + OPEN_NS)
        except PeerGone as why:
            return Told(stopped=str(why))
        return super().__call__(player)


def published_roles(size: int, count: int, publisher: End, subscriber: End, subscribers: int = 1) -> list[Role]:
    """Every subscriber opens an end like this one."""
    consumers = [Role(name, Consume(size, count), (subscriber,)) for name in names_of(subscribers)]
    return [*consumers, Role("publisher", PublishToAll(size, count, subscribers), (publisher,), begins=True)]


def names_of(subscribers: int) -> list[str]:
    return ["consumer"] if subscribers == 1 else [f"consumer {number}" for number in range(1, subscribers + 1)]


def wrong_with_published(told: Mapping[str, Told], count: int, subscribers: int = 1) -> list[str]:
    """Each subscriber is to have every message, once, in order, as it was sent; what all say is said once."""
    sender = {"publisher": told["publisher"]}
    reasons = [wrong for name in names_of(subscribers) for wrong in wrong_with(sender, {name: told[name]}, count)]
    return list(dict.fromkeys(reasons))
