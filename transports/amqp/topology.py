"""A run's queues at the broker: one direct exchange, a routing key each, names of their own.

gateway  ──order──▶  [RUN.order]       ──▶  engine
gateway  ◀──  [RUN.trade]  ◀──trade──       engine
both     ──statistics──▶ [RUN.statistics] ──▶  reporter
both     ◀──  [a queue each]  ◀──reply──       reporter
"""

from __future__ import annotations

from typing import NamedTuple

from transports.amqp.delivery import Delivery
from transports.base import Address

UNUSED_MS = 600_000
"""The broker removes what nobody used for so long: what a killed run leaves does not stay."""


NAMES = ("order", "trade", "statistics")
"""Of a run's queues, behind its name."""


class Queue(NamedTuple):
    """`name` is empty for a queue of one's own, which the broker names."""

    name: str
    key: str


class Side(NamedTuple):
    """What one end of a link consumes, where it publishes, and what else has to be there for that."""

    exchange: str
    consumes: Queue
    publishes_to: Queue

    @classmethod
    def of(cls, address: Address, listens: bool) -> Side:
        """The listener's end or the connector's."""
        run = address.token
        if address.fan_in:
            inbound, outbound = Queue(f"{run}.statistics", "statistics"), Queue("", "reply")
        else:
            inbound, outbound = Queue(f"{run}.order", "order"), Queue(f"{run}.trade", "trade")
        return cls(run, inbound, outbound) if listens else cls(run, outbound, inbound)

    @property
    def declares(self) -> tuple[Queue, ...]:
        """Both queues, so that it does not matter who comes first; but nobody makes another's own."""
        return tuple(queue for queue in (self.consumes, self.publishes_to) if queue.name or queue is self.consumes)


def queue_arguments(queue: Queue, delivery: Delivery) -> dict[str, object]:
    """How the queue is declared: the same by both ends."""
    if not queue.name:
        return {"exclusive": True, "auto_delete": True}
    arguments = {"x-expires": UNUSED_MS}
    return {"durable": delivery.durable, "auto_delete": not delivery.confirms, "arguments": arguments}
