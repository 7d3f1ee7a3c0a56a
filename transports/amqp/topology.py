"""A run's queues at the broker: one direct exchange, a routing key each, names of their own.

gateway  ──order──▶  [RUN.order]       ──▶  engine
gateway  ◀──  [RUN.trade]  ◀──trade──       engine
both     ──statistics──▶ [RUN.statistics] ──▶  reporter
both     ◀──  [a queue each]  ◀──reply──       reporter

publishers ──work──▶ [RUN.work] ──▶ consumers, who share it
"""

from __future__ import annotations

from typing import NamedTuple

from transports.amqp.delivery import Delivery
from transports.base import Address
from transports.pattern import Pattern

UNUSED_MS = 600_000
"""The broker removes what nobody used for so long: what a killed run leaves does not stay."""


NAMES = ("order", "trade", "statistics", "work")
"""Of a run's queues, behind its name."""


class Queue(NamedTuple):
    """`name` is empty for a queue of one's own, which the broker names; several may consume one that is `shared`."""

    name: str
    key: str
    shared: bool = False


class Side(NamedTuple):
    """What one end of a link consumes, if anything, and where it publishes, if anywhere."""

    exchange: str
    consumes: Queue | None
    publishes_to: Queue | None

    @classmethod
    def of(cls, address: Address, listens: bool) -> Side:
        """The listener's end or the connector's."""
        run = address.token
        inbound, outbound = _between(run, address.pattern)
        return cls(run, inbound, outbound) if listens else cls(run, outbound, inbound)

    @property
    def declares(self) -> tuple[Queue, ...]:
        """Both queues, so that it does not matter who comes first; but nobody makes another's own."""
        both = (queue for queue in (self.consumes, self.publishes_to) if queue is not None)
        return tuple(queue for queue in both if queue.name or queue is self.consumes)


def _between(run: str, pattern: Pattern) -> tuple[Queue | None, Queue | None]:
    """What the listener consumes, and what the connector does."""
    match pattern:
        case Pattern.FAN_IN:
            return Queue(f"{run}.statistics", "statistics"), Queue("", "reply")
        case Pattern.QUEUE:
            return Queue(f"{run}.work", "work", shared=True), None
        case _:
            return Queue(f"{run}.order", "order"), Queue(f"{run}.trade", "trade")


def queue_arguments(queue: Queue, delivery: Delivery) -> dict[str, object]:
    """How the queue is declared: the same by both ends."""
    if not queue.name:
        return {"exclusive": True, "auto_delete": True}
    arguments = {"x-expires": UNUSED_MS}
    return {"durable": delivery.durable, "auto_delete": not delivery.confirms, "arguments": arguments}
