"""What one end of a link needs at the broker, made by whoever comes first: exchanges, queues, bindings, consumers."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from transports.amqp.delivery import PREFETCH, Delivery
from transports.amqp.session import Session
from transports.amqp.topology import Exchange, Queue, Side, queue_arguments


def declare(session: Session, side: Side, delivery: Delivery, until_ns: int) -> list[str]:
    """The names of the queues: those that this end consumes, then the others."""
    for exchange in side.exchanges:
        _declare_exchange(session, exchange, delivery, until_ns)
    *many, last = side.declares
    return [*(_declare_unasked(session, queue, delivery) for queue in many),
            _declare_queue(session, last, delivery, until_ns)]  # fmt: skip


def _declare_exchange(session: Session, exchange: Exchange, delivery: Delivery, until_ns: int) -> None:
    declare, durable = session.channel.exchange_declare, delivery.durable
    session.ask(
        lambda done: declare(exchange.name, exchange.kind, durable=durable, auto_delete=True, callback=done), until_ns
    )


def _declare_unasked(session: Session, queue: Queue, delivery: Delivery) -> str:
    """Without an answer, since there may be thousands: a mistake shows at the next question, which waits for all."""
    name = queue.name or f"{queue.exchange.name}.{secrets.token_hex(8)}"
    session.channel.queue_declare(name, **queue_arguments(queue, delivery))
    session.channel.queue_bind(name, queue.exchange.name, queue.key)
    return name


def _declare_queue(session: Session, queue: Queue, delivery: Delivery, until_ns: int) -> str:
    channel, arguments = session.channel, queue_arguments(queue, delivery)
    (declared,) = session.ask(lambda done: channel.queue_declare(queue.name, callback=done, **arguments), until_ns)
    name: str = declared.method.queue
    session.ask(lambda done: channel.queue_bind(name, queue.exchange.name, queue.key, callback=done), until_ns)
    return name


def consume(
    session: Session,
    queues: Sequence[tuple[str, Queue]],
    delivery: Delivery,
    message: Callable[..., None],
    until_ns: int,
) -> None:
    """From now on deliveries come, on the one channel."""
    channel = session.channel
    if delivery.acks:
        session.ask(lambda done: channel.basic_qos(prefetch_count=PREFETCH, callback=done), until_ns)
    auto_ack, (*many, (last, last_queue)) = not delivery.acks, queues
    for name, queue in many:
        channel.basic_consume(name, message, auto_ack, exclusive=not queue.shared)
    session.ask(
        lambda done: channel.basic_consume(last, message, auto_ack, exclusive=not last_queue.shared, callback=done),
        until_ns,
    )
