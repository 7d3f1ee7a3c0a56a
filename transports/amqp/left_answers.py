"""Leaves answers in a queue that no client reads, so that a benchmark starts with a filled queue."""

from __future__ import annotations

import secrets
import time

import pika

from transports.amqp.address import BrokerAddress
from transports.amqp.session import BrokerSession
from transports.amqp.topology import LinkSide, Queue, declare, exchange_of, queue_length
from transports.amqp.wire import PERSISTENT
from transports.base import Address, Pattern, TransportError

LEAVING_NS = 30_000_000_000
"""The time that `leave_answers` may take, besides LEAVING_ONE_NS for each answer."""
LEAVING_ONE_NS = 500_000


def leave_answers(url: str, run: str, pattern: Pattern, body: bytes, count: int) -> None:
    """Publish `count` answers to an absent client, which stay in their queue, as `bench request-reply --preload` does.

    The queue is RUN.responses with the pattern `scan`, in which all clients search; with `requests` it is the absent
    client's own, RUN.absent. On return all answers are in the queue. TransportError if they are not.
    """
    address = Address.parse(url, run, pattern)
    until_ns = time.monotonic_ns() + LEAVING_NS + count * LEAVING_ONE_NS
    broker = BrokerAddress.of(address)
    session = BrokerSession.on_new_connection(broker, until_ns)
    try:
        _leave(session, broker, _queue_for_answers(address), body, count, until_ns)
    finally:
        session.close(until_ns)


def _queue_for_answers(address: Address) -> Queue:
    if address.pattern is Pattern.SCAN:
        [shared_queue] = LinkSide.of(address, listens=False).consumes
        return shared_queue
    return Queue(f"{address.token}.absent", exchange_of(address.token), "absent")


def _leave(session: BrokerSession, broker: BrokerAddress, queue: Queue, body: bytes, count: int, until_ns: int) -> None:
    declare(session, LinkSide((queue,), None), broker.delivery, until_ns)
    absent_client_id = secrets.token_hex(8)
    mode = PERSISTENT if broker.delivery.durable else None
    for number in range(count):
        properties = pika.BasicProperties(delivery_mode=mode, correlation_id=f"{absent_client_id}{number:016x}")
        session.channel.basic_publish(queue.exchange.name, queue.key, body, properties)
    # A queue may report its length before it has handled all messages that came.
    while True:
        length = queue_length(session, queue.name, until_ns)
        if length == count:
            return
        if time.monotonic_ns() > until_ns:
            raise TransportError(f"{length} of {count} messages lie in {queue.name}")
