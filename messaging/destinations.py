"""Queues and exchanges with their publishers and subscribers, as perftest has several: their roles, their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from messaging.benchmark import Results, Settings
from messaging.flow import ConsumeShared, Publish
from messaging.roles import LinkEnd, Links, Role, Sharing, of_kind
from messaging.streams import wrong_with, wrong_with_each
from runs.errors import UserError
from transports.base import Pattern

SHARED, USUAL = "shared", 6
MODES = {SHARED: Pattern.QUEUE, "fanout": Pattern.FANOUT, "topic": Pattern.TOPIC}


def mode_of(settings: Settings) -> str:
    """The mode of a recorded cell; old records name no mode."""
    return str(settings.get("mode", SHARED))


@dataclass(frozen=True)
class Shape:
    """How many publish to each queue or exchange, and how many subscribe; `both`: each client does both."""

    publishers: int
    subscribers: int
    both: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Shape:
        """UserError for clients that no queue can have, or that do not know what they are."""
        npubs, nsubs, clients = (settings.get(name) for name in ("npubs", "nsubs", "clients"))
        is_split = npubs is not None or nsubs is not None or mode_of(settings) != SHARED
        if is_split and clients is not None and not settings.get("quick"):
            raise UserError(
                "--clients publish to shared queues and subscribe to them: leave out --npubs, --nsubs, --mode"
            )
        if is_split:
            return cls(npubs or USUAL, nsubs or USUAL)
        each, odd = divmod(clients or USUAL * settings["queues"], settings["queues"])
        if odd or not each:
            raise UserError(f"--clients is {clients}: give a multiple of --qt, which is {settings['queues']}")
        return cls(each, each, both=True)

    @property
    def kinds(self) -> tuple[str, str]:
        """First words of the roles that publish, and of those that subscribe."""
        return ("client", "client") if self.both else ("publisher", "subscriber")


@dataclass(frozen=True)
class Destination:
    """A queue or an exchange, numbered from 1, to which each publisher sends `count` messages."""

    number: int
    pattern: Pattern
    size: int
    count: int
    shape: Shape

    @property
    def is_queue(self) -> bool:
        return self.pattern is Pattern.QUEUE

    @property
    def name(self) -> str:
        return f"{'queue' if self.is_queue else 'exchange'} {self.number}"

    @property
    def published(self) -> int:
        return self.shape.publishers * self.count

    @property
    def delivered(self) -> int:
        return self.published * (1 if self.is_queue else self.shape.subscribers)

    def roles(self, links: Links, rest_s: float) -> list[Role]:
        """`rest_s` is that of each ConsumeShared."""
        subscribing, publishing = self._ends(links)
        shares, consume = Sharing(self.name, self.delivered), ConsumeShared(self.size, self.shape.publishers, rest_s)
        if self.shape.both:
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
        return Publish(self.size, self.count, replies=0, publisher=number, subscribers=self.shape.subscribers)

    def _ends(self, links: Links) -> tuple[Sequence[LinkEnd], Sequence[LinkEnd]]:
        """Ends of the subscribers, and of the publishers."""
        name = str(self.number)
        if self.is_queue:
            listeners, connector = links.many(self.size, self.pattern, [()] * self.shape.subscribers, name=name)
            return listeners, [connector] * self.shape.publishers
        keys, subscribed = self._keys()
        connections = self.shape.publishers * self.shape.subscribers
        listeners, connector = links.many(self.size * connections, self.pattern, keys, subscribed, name)
        return [connector] * self.shape.subscribers, listeners

    def _keys(self) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
        """Routing keys of each publisher, and patterns of each subscriber."""
        if self.pattern is not Pattern.TOPIC:
            return [()] * self.shape.publishers, ()
        stem = f"perf.q{self.number}"
        return [(f"{stem}.p{number}",) for number in range(1, self.shape.publishers + 1)], (f"{stem}.#",)

    def wrong_with(self, results: Results) -> list[str]:
        """Sentences unless each message was delivered once, to one or to all, and each publisher's in order."""
        senders, receivers = (of_kind(results, f"{kind} {self.number}.") for kind in self.shape.kinds)
        if self.is_queue:
            wrong = wrong_with(senders, receivers, self.published, shared=True)
        else:
            wrong = wrong_with_each(senders, receivers, self.published)
        return [f"{self.name}: {reason}" for reason in wrong]
