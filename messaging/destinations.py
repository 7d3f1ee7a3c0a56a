"""Queues and exchanges with their publishers and subscribers, as perftest has several: their roles, their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from messaging.benchmark import Results
from messaging.flow import ConsumeShared, Publish
from messaging.roles import LinkEnd, Links, Role, Sharing, of_kind
from messaging.streams import wrong_with, wrong_with_each
from transports.base import Pattern


@dataclass(frozen=True)
class Destination:
    """A queue or an exchange, numbered from 1, with its publishers of `count` messages each, and its subscribers."""

    number: int
    pattern: Pattern
    size: int
    count: int
    publishers: int
    subscribers: int
    both: bool = False
    """Each client publishes and subscribes."""

    @property
    def is_queue(self) -> bool:
        return self.pattern is Pattern.QUEUE

    @property
    def name(self) -> str:
        return f"{'queue' if self.is_queue else 'exchange'} {self.number}"

    @property
    def published(self) -> int:
        return self.publishers * self.count

    @property
    def delivered(self) -> int:
        return self.published * (1 if self.is_queue else self.subscribers)

    def roles(self, links: Links, rest_s: float) -> list[Role]:
        """`rest_s` is that of each ConsumeShared."""
        subscribing, publishing = self._ends(links)
        shares, consume = Sharing(self.name, self.delivered), ConsumeShared(self.size, self.publishers, rest_s)
        if self.both:
            both = replace(consume, count=self.count)
            return [
                Role(f"client {self.number}.{number + 1}", replace(both, publisher=number), ends, shares=shares)
                for number, ends in enumerate(zip(publishing, subscribing, strict=True))
            ]
        subscribers = [
            Role(f"subscriber {self.number}.{number}", consume, (end,), shares=shares)
            for number, end in enumerate(subscribing, 1)
        ]
        publishers = [
            Role(f"publisher {self.number}.{number + 1}", self._publish(number), (end,), True, shares)
            for number, end in enumerate(publishing)
        ]
        return subscribers + publishers

    def _publish(self, number: int) -> Publish:
        return Publish(self.size, self.count, replies=0, publisher=number, subscribers=self.subscribers)

    def _ends(self, links: Links) -> tuple[Sequence[LinkEnd], Sequence[LinkEnd]]:
        """Ends of the subscribers, and of the publishers."""
        name = str(self.number)
        if self.is_queue:
            listeners, connector = links.many(self.size, self.pattern, [()] * self.subscribers, name=name)
            return listeners, [connector] * self.publishers
        keys, subscribed = self._keys()
        connections = self.publishers * self.subscribers
        listeners, connector = links.many(self.size * connections, self.pattern, keys, subscribed, name)
        return [connector] * self.subscribers, listeners

    def _keys(self) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
        """Routing keys of each publisher, and patterns of each subscriber."""
        if self.pattern is not Pattern.TOPIC:
            return [()] * self.publishers, ()
        stem = f"perf.q{self.number}"
        return [(f"{stem}.p{number}",) for number in range(1, self.publishers + 1)], (f"{stem}.#",)

    def wrong_with(self, results: Results) -> list[str]:
        """Sentences unless each message was delivered once, to one or to all, and each publisher's in order."""
        kinds = ("client", "client") if self.both else ("publisher", "subscriber")
        senders, receivers = (of_kind(results, f"{kind} {self.number}.") for kind in kinds)
        if self.is_queue:
            wrong = wrong_with(senders, receivers, self.published, shared=True)
        else:
            wrong = wrong_with_each(senders, receivers, self.published)
        return [f"{self.name}: {reason}" for reason in wrong]
