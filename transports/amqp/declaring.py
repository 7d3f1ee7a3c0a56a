"""What one end of a link needs at the broker, made by whoever comes first: exchanges, queues, bindings, consumers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transports.amqp.delivery import PREFETCH, Delivery
from transports.amqp.session import Session
from transports.amqp.topology import Exchange, Queue, Side, queue_arguments


def declare(session: Session, side: Side, delivery: Delivery, until_ns: int) -> list[str]:
    """The names of the queues: those that this end consumes, then the others."""
    for exchange in side.exchanges:
        _declare_exchange(session, exchange, delivery, until_ns)
    return [_declare_queue(session, queue, delivery, until_ns) for queue in side.declares]


def _declare_exchange(session: Session, exchange: Exchange, delivery: Delivery, until_ns: int) -> None:
    declare, durable = session.channel.exchange_declare, delivery.durable
    session.ask(
        lambda done: declare(exchange.name, exchange.kind, durable=durable, auto_delete=True, callback=done), until_ns
    )


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
    for name, queue in queues:
        _consume_one(session, name, not queue.shared, not delivery.acks, message, until_ns)


def _consume_one(
    session: Session, name: str, exclusive: bool, auto_ack: bool, message: Callable[..., None], until_ns: int
) -> None:
    start = session.channel.basic_consume
    session.ask(lambda done: start(name, message, auto_ack, exclusive=exclusive, callback=done), until_ns)
