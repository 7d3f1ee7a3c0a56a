"""Answers to a client that has gone: messages that lie in the queue of answers, and that nobody takes.

scan      [RUN.responses]   in the queue that all look through
requests  [RUN.absent]      in the client's own, at the same broker
"""

from __future__ import annotations

import contextlib
import secrets
import time

import pika

from transports.amqp.address import BrokerAddress
from transports.amqp.declaring import declare
from transports.amqp.loops import OwnLoop
from transports.amqp.session import Session, parameters
from transports.amqp.topology import Exchange, Queue, Side
from transports.amqp.wire import PERSISTENT
from transports.base import Address, TransportError
from transports.pattern import Pattern

PATIENCE_NS = 30_000_000_000


def leave_answers(url: str, run: str, pattern: Pattern, body: bytes, count: int) -> None:
    """Put them there; they are, once this is over. TransportError where they are not."""
    address = Address.parse(url, run, pattern)
    broker, until_ns = BrokerAddress.of(address), time.monotonic_ns() + PATIENCE_NS
    session = Session(broker)
    loop = OwnLoop(parameters(broker), session, until_ns)
    try:
        session.open(loop, until_ns)
        _leave(session, broker, _queue(address), body, count, until_ns)
        session.close(until_ns)
    finally:
        with contextlib.suppress(TransportError):
            loop.release()


def _queue(address: Address) -> Queue:
    if address.pattern is Pattern.SCAN:
        (shared,) = Side.of(address, listens=False).consumes
        return shared
    return Queue(f"{address.token}.absent", Exchange(address.token), "absent")


def _leave(session: Session, broker: BrokerAddress, queue: Queue, body: bytes, count: int, until_ns: int) -> None:
    declare(session, Side((queue,), None), broker.delivery, until_ns)
    gone, mode = secrets.token_hex(8), PERSISTENT if broker.delivery.durable else None
    for number in range(count):
        properties = pika.BasicProperties(delivery_mode=mode, correlation_id=f"{gone}{number:016x}")
        session.channel.basic_publish(queue.exchange.name, queue.key, body, properties)
    while (
        lies := _length(session, queue.name, until_ns)
    ) != count:  # a queue says its length before it looks what came
        if time.monotonic_ns() > until_ns:
            raise TransportError(f"{lies} of {count} messages lie in {queue.name}")


def _length(session: Session, queue: str, until_ns: int) -> int:
    look = session.channel.queue_declare
    (seen,) = session.ask(lambda done: look(queue, passive=True, callback=done), until_ns)
    return int(seen.method.message_count)
