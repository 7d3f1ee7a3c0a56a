"""A run's queues at the broker: one direct exchange, a routing key each, names of their own.

gateway  ──order──▶  [RUN.order]       ──▶  engine
gateway  ◀──  [RUN.trade]  ◀──trade──       engine
both     ──statistics──▶ [RUN.statistics] ──▶  reporter
both     ◀──  [a queue each]  ◀──reply──       reporter

publishers ──work──▶ [RUN.work] ──▶ consumers, who share it
publishers ──▶  RUN.fanout, RUN.topic  ──▶ [one or more queues each] ──▶ subscribers
publishers ◀──  [a queue each]  ◀──back──  subscribers

askers ──requests──▶ [RUN.requests] ──▶ who answers
askers ◀── [a queue each, whose name their requests carry] ◀──  who answers        indexed
askers ◀── [RUN.responses], which each looks through ◀── responses ──              scan
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

from transports.amqp.delivery import Delivery
from transports.base import Address
from transports.pattern import ASKED, PUBLISHED, Pattern

UNUSED_MS = 600_000
"""The broker removes what nobody used for so long: what a killed run leaves does not stay."""


EXCHANGES = ("", ".fanout", ".topic")
"""Of a run's exchanges, behind its name."""
NAMES = ("order", "trade", "statistics", "work", "requests", "responses", "absent")
"""Of a run's queues, behind its name."""


class Exchange(NamedTuple):
    name: str
    kind: str = "direct"


class Queue(NamedTuple):
    """`name` is empty for a queue of one's own, which the broker names; several may consume one that is `shared`."""

    name: str
    exchange: Exchange
    key: str
    shared: bool = False


class Route(NamedTuple):
    """Where messages are published; what is `mandatory` comes back where no queue takes it.

    tries     the first one is: whether any queue takes the key shows then, and no other message pays for it
    asker     16 hexadecimal digits: these are requests, each with a correlation id that begins with them
    reply_to  where their answers are to go, if they are to say so
    answers   these are answers: each has the correlation id of its request, and no `key` if it goes where that said
    """

    exchange: str
    key: str
    mandatory: bool
    asker: str = ""
    reply_to: str = ""
    answers: bool = False
    tries: bool = False


class Side(NamedTuple):
    """What one end of a link consumes, if anything, and where it publishes, if anywhere."""

    consumes: tuple[Queue, ...]
    publishes_to: Queue | None
    asker: str = ""
    answers: bool = False
    scans: bool = False

    @classmethod
    def of(cls, address: Address, listens: bool) -> Side:
        """The listener's end or the connector's."""
        if address.pattern in PUBLISHED:
            return cls._of_publishing(address, listens)
        if address.pattern in ASKED:
            return cls._of_asking(address.token, address.pattern is Pattern.SCAN, listens)
        inbound, outbound = _between(address.token, address.pattern, address.options.get("pair", ""))
        consumes, publishes_to = (inbound, outbound) if listens else (outbound, inbound)
        return cls(() if consumes is None else (consumes,), publishes_to)

    @classmethod
    def _of_publishing(cls, address: Address, listens: bool) -> Side:
        run, kind = address.token, address.pattern.value
        back, exchange = Queue("", Exchange(run), "back"), Exchange(f"{run}.{kind}", kind)
        subscribed = tuple(Queue("", exchange, key) for key in address.keys or ("",))
        return cls((back,), subscribed[0]) if listens else cls(subscribed, back)

    @classmethod
    def _of_asking(cls, run: str, scans: bool, listens: bool) -> Side:
        asker, exchange = "" if listens else secrets.token_hex(8), Exchange(run)
        requests = Queue(f"{run}.requests", exchange, "requests", shared=True)
        answers = Queue("", exchange, asker)
        if scans:
            answers = Queue(f"{run}.responses", exchange, "responses", shared=True)
        if listens:
            return cls((requests,), answers, answers=True, scans=scans)
        return cls((answers,), requests, asker, scans=scans)

    @property
    def declares(self) -> tuple[Queue, ...]:
        """All queues, so that it does not matter who comes first; but nobody makes another's own."""
        others = self.publishes_to
        return self.consumes + (() if others is None or not others.name else (others,))

    def route(self, delivery: Delivery) -> Route:
        """With what everything is published."""
        to = self.publishes_to
        if to is None:
            return Route("", "", False)
        reply_to = "" if self.scans else self.asker
        tries = self.publishes_to_topic and not delivery.confirms
        return Route(to.exchange.name, to.key, delivery.confirms, self.asker, reply_to, self.answers, tries)

    @property
    def publishes_to_topic(self) -> bool:
        return self.publishes_to is not None and self.publishes_to.exchange.kind == Pattern.TOPIC.value

    @property
    def deletes(self) -> list[str]:
        """Queues that nobody needs once this end has gone, and that are no connection's own."""
        scanned = [self.publishes_to] if self.answers and self.publishes_to is not None else []
        alone = [queue for queue in self.consumes if not queue.shared]
        return [queue.name for queue in (*alone, *scanned) if queue.name]

    @property
    def exchanges(self) -> set[Exchange]:
        return {queue.exchange for queue in (*self.consumes, self.publishes_to) if queue is not None}


def _between(run: str, pattern: Pattern, pair: str) -> tuple[Queue | None, Queue | None]:
    """What the listener consumes, and what the connector does; pairs with names share a run's exchange."""

    def queue(name: str, shared: bool = False) -> Queue:
        key = f"{pair}.{name}" if pair else name
        return Queue(f"{run}.{key}", Exchange(run), key, shared)

    match pattern:
        case Pattern.FAN_IN:
            return queue("statistics"), queue("reply")._replace(name="")
        case Pattern.QUEUE:
            return queue("work", shared=True), None
        case _:
            return queue("order"), queue("trade")


def queue_arguments(queue: Queue, delivery: Delivery) -> dict[str, object]:
    """How the queue is declared: the same by both ends."""
    if not queue.name:
        return {"exclusive": True, "auto_delete": True}
    arguments = {"x-expires": UNUSED_MS}
    return {"durable": delivery.durable, "auto_delete": not delivery.confirms, "arguments": arguments}
