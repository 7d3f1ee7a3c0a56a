"""Delivery guarantees by name: what a message survives, and what is paid for it."""

from __future__ import annotations

from typing import NamedTuple


class Delivery(NamedTuple):
    """How a link publishes and consumes."""

    name: str
    acks: bool
    """The consumer acknowledges, in batches, what it is done with; the broker gives the rest to the next one."""
    confirms: bool
    """The broker confirms what it has taken; a message that no queue takes comes back."""
    durable: bool
    """Queues and messages outlive the broker."""


DELIVERIES = {
    each.name: each
    for each in (
        Delivery("lossy", acks=False, confirms=False, durable=False),  # the paper's
        Delivery("acked", acks=True, confirms=False, durable=False),
        Delivery("confirmed", acks=True, confirms=True, durable=False),
        Delivery("durable", acks=True, confirms=True, durable=True),
    )
}
CONFIRM_WINDOW = 4_096
"""Most publishes that wait for the broker's confirm."""
PREFETCH = 2 * CONFIRM_WINDOW
"""Most deliveries unacknowledged: they are set aside while a publisher waits for room in its window."""
ACK_EVERY = 200
"""Deliveries that one acknowledgement settles, while they keep coming."""
