"""One publisher and those who subscribe to him: the parts, and what is wrong with what they have."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from messaging.answer import wrong_with_each
from messaging.flow import Consume, Publish
from messaging.player import OPEN_NS, Player
from messaging.roles import End, Role, Told
from messaging.round_trips import await_subscribers
from transports.base import PeerGone


@dataclass(frozen=True)
class PublishToAll(Publish):
    """Begins once all its subscribers are there."""

    subscribers: int = 1

    def __call__(self, player: Player) -> Told:
        try:
            await_subscribers(player.link, self.subscribers, time.monotonic_ns() + OPEN_NS)
        except PeerGone as why:
            return Told(stopped=str(why))
        return super().__call__(player)


def published_roles(size: int, count: int, publisher: End, subscriber: End, subscribers: int = 1) -> list[Role]:
    """Every subscriber opens an end like this one, and replies once it has everything."""
    consumers = [Role(name, Consume(size, count), (subscriber,)) for name in names_of(subscribers)]
    publish = PublishToAll(size, count, replies=subscribers, subscribers=subscribers)
    return [*consumers, Role("publisher", publish, (publisher,), begins=True)]


def names_of(subscribers: int) -> list[str]:
    return ["consumer"] if subscribers == 1 else [f"consumer {number}" for number in range(1, subscribers + 1)]


def wrong_with_published(told: Mapping[str, Told], count: int, subscribers: int = 1) -> list[str]:
    return wrong_with_each(
        {"publisher": told["publisher"]}, {name: told[name] for name in names_of(subscribers)}, count
    )
