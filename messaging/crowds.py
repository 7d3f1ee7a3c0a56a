"""Many publishers and many subscribers who all meet at one queue, or at one exchange.

    QUEUE    publishers ══▶ [one queue]                          ══▶ subscribers, each message to one of them
    FANOUT   publishers ══▶ [fanout exchange ▸ a queue for each] ══▶ subscribers, each message to every one
    TOPIC    the same through a topic exchange: publisher P at exchange Q has the key perf.qQ.pP, and who subscribes
             there the pattern perf.qQ.#

Brokerless: PUSHes to the PULL of each subscriber; or SUBs to the XPUB of each publisher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from messaging.answer import wrong_with, wrong_with_each
from messaging.places import Places
from messaging.roles import End, Role, Sharing, Told
from transports.pattern import Pattern


@dataclass(frozen=True)
class Crowd:
    """`number` is its queue's or exchange's, from 1; `count` messages are of each publisher."""

    number: int
    pattern: Pattern
    size: int
    count: int
    publishers: int
    subscribers: int

    @property
    def is_at_queue(self) -> bool:
        return self.pattern is Pattern.QUEUE

    @property
    def where(self) -> str:
        return f"{'queue' if self.is_at_queue else 'exchange'} {self.number}"

    @property
    def published(self) -> int:
        return self.publishers * self.count

    @property
    def delivered(self) -> int:
        return self.published * (1 if self.is_at_queue else self.subscribers)

    def roles(self, places: Places, rest_s: float) -> list[Role]:
        """`rest_s`: of each subscriber, see ConsumeShared."""
        from messaging.flow import ConsumeShared
        from messaging.published import PublishToAll

        subscribing, publishing = self._ends(places)
        shares, consume = Sharing(self.where, self.delivered), ConsumeShared(self.size, self.publishers, rest_s)
        subscribers = [
            Role(f"subscriber {self.number}.{number}", consume, (end,), shares=shares)
            for number, end in enumerate(subscribing, 1)
        ]
        publish = PublishToAll(self.size, self.count, replies=0, subscribers=self.subscribers)
        publishers = [
            Role(f"publisher {self.number}.{number + 1}", replace(publish, publisher=number), (end,), True, shares)
            for number, end in enumerate(publishing)
        ]
        return subscribers + publishers

    def _ends(self, places: Places) -> tuple[Sequence[End], Sequence[End]]:
        """Of each subscriber, and of each publisher."""
        name = str(self.number)
        if self.is_at_queue:
            listeners, connector = places.together(self.size, self.pattern, [()] * self.subscribers, name=name)
            return listeners, [connector] * self.publishers
        keys, subscribed = self._keys()
        connections = self.publishers * self.subscribers
        listeners, connector = places.together(self.size * connections, self.pattern, keys, subscribed, name)
        return [connector] * self.subscribers, listeners

    def _keys(self) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
        """Of each publisher, and the patterns of each subscriber."""
        if self.pattern is not Pattern.TOPIC:
            return [()] * self.publishers, ()
        stem = f"perf.q{self.number}"
        return [(f"{stem}.p{number}",) for number in range(1, self.publishers + 1)], (f"{stem}.#",)

    def wrong_with(self, told: Mapping[str, Told]) -> list[str]:
        """Each message is to be delivered once, to whomever or to everyone, and each publisher's in order."""
        senders, receivers = (of_kind(told, f"{kind} {self.number}.") for kind in ("publisher", "subscriber"))
        if self.is_at_queue:
            wrong = wrong_with(senders, receivers, self.published, shared=True)
        else:
            wrong = wrong_with_each(senders, receivers, self.published)
        return [f"{self.where}: {reason}" for reason in wrong]


def of_kind(told: Mapping[str, Told], beginning: str) -> dict[str, Told]:
    return {name: of_role for name, of_role in told.items() if name.startswith(beginning)}
