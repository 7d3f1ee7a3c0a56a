"""A run's exchanges and queues at the broker: their names, and their declaration by the end that comes first.

RUN is the run's name, and CODE is `exchange-` with a code of that name: messages carry the exchange's name, so it is as
long for one run as for another.

gateway  ──order──▶  [RUN.order]       ──▶  engine
gateway  ◀──  [RUN.trade]  ◀──trade──       engine
both     ──statistics──▶ [RUN.statistics] ──▶  reporter
both     ◀──  [a queue each]  ◀──reply──       reporter

publishers ──work──▶ [RUN.work] ──▶ consumers, which share it
publishers ──▶  CODE.fanout, CODE.topic  ──▶ [one or more queues each] ──▶ subscribers
publishers ◀──  [a queue each]  ◀──back──  subscribers
    a publisher of its own with `pair=N`: CODE.fanout.N, CODE.topic.N; N.back

clients ──requests──▶ [RUN.requests] ──▶ servers
clients ◀── [a queue each, whose name their requests carry] ◀──  servers        indexed
clients ◀── [RUN.responses], which each client searches ◀── responses ── servers   scan

each end  ── a key for each frame ──▶ CODE ──▶ [RUN.NAME], or [RUN.NAME@SUBSCRIBER] for each subscriber   routed
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from transports.amqp.address import CLASSIC, QUEUES, STREAM, BrokerAddress, Delivery
from transports.amqp.session import BrokerSession
from transports.base import (
    CONSUMED_PREFIX,
    PUBLISHING_PATTERNS,
    REQUEST_PATTERNS,
    SUBSCRIBER_MARK,
    Address,
    BadAddress,
    Pattern,
    mask,
)
from transports.run_code import run_code

SINCE = {"classic": (0,), "quorum": (3, 8), "stream": (3, 9)}
"""The version of RabbitMQ that first had a kind of queue."""
UNUSED_MS = 600_000
"""The broker removes a queue that was unused for this time, such as a killed run's."""
EXCHANGES = ("", ".fanout", ".topic")
"""The endings of a run's exchanges, but for those of several publishers apart; each begins with CODE."""
NAMES = ("order", "trade", "statistics", "work", "requests", "responses", "absent")
"""The endings of a run's queues; each begins with the run's name."""


class Exchange(NamedTuple):
    """An exchange at the broker."""

    name: str
    kind: str = "direct"


def exchange_of(run: str, ending: str = "", kind: str = "direct") -> Exchange:
    """An exchange of a run, with one of EXCHANGES or the ending of a publisher apart."""
    return Exchange(f"exchange-{run_code(run)}{ending}", kind)


class Queue(NamedTuple):
    """A queue, bound to an exchange with a key. Several may consume a `shared` queue.

    `name` is empty for a queue of one end alone, which gets a random name.
    """

    name: str
    exchange: Exchange
    key: str
    shared: bool = False


class Route(NamedTuple):
    """The exchange and key of an end's messages; the broker returns a `mandatory` message that no queue takes.

    first_is_mandatory  only the first message is mandatory: it shows whether any queue takes the key
    asker               16 hexadecimal digits: the messages are requests, whose correlation ids begin with these digits
    reply_to            the queue for the answers to these requests; empty if the requests do not name one
    answers             the messages are answers: each has its request's correlation id, and goes to its reply-to
                        without `key`
    keys                each message begins with the number of its key among these
    """

    exchange: str
    key: str
    mandatory: bool
    asker: str = ""
    reply_to: str = ""
    answers: bool = False
    first_is_mandatory: bool = False
    keys: tuple[str, ...] = ()


class LinkSide(NamedTuple):
    """The queues that one end of a link consumes, and the queue it publishes to, if any."""

    consumes: tuple[Queue, ...]
    publishes_to: Queue | None
    asker: str = ""
    answers: bool = False
    scans: bool = False
    keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, address: Address, listens: bool) -> LinkSide:
        """The listener's end or the connector's."""
        if address.pattern in PUBLISHING_PATTERNS:
            return cls._of_publishing(address, listens)
        if address.pattern in REQUEST_PATTERNS:
            return cls._of_asking(address.token, address.pattern is Pattern.SCAN, listens)
        if address.pattern is Pattern.ROUTED:
            return cls._of_routed(address.token, address.keys)
        inbound, outbound = _between(address.token, address.pattern, address.options.get("pair", ""))
        consumes, publishes_to = (inbound, outbound) if listens else (outbound, inbound)
        return cls(() if consumes is None else (consumes,), publishes_to)

    @classmethod
    def _of_publishing(cls, address: Address, listens: bool) -> LinkSide:
        run = address.token
        kind = address.pattern.value
        pair = address.options.get("pair", "")
        ending = f".{kind}.{pair}" if pair else f".{kind}"
        back = Queue("", exchange_of(run), f"{pair}.back" if pair else "back")
        exchange = exchange_of(run, ending, kind)
        keys = address.keys or ("",)
        if listens:
            return cls((back,), Queue("", exchange, keys[0]))
        names = [""] * len(keys)
        # A queue without a name is exclusive: it ends with its connection, and only a classic queue can be that.
        if address.options.get("delivery") == "durable" or address.options.get("queue", CLASSIC) != CLASSIC:
            subscriber = address.options.get("subscriber") or secrets.token_hex(8)
            names = [f"{run}{ending}.{subscriber}.{number}" for number in range(len(keys))]
        return cls(tuple(Queue(name, exchange, key) for name, key in zip(names, keys, strict=True)), back)

    @classmethod
    def _of_asking(cls, run: str, scans: bool, listens: bool) -> LinkSide:
        asker = "" if listens else secrets.token_hex(8)
        exchange = exchange_of(run)
        requests = Queue(f"{run}.requests", exchange, "requests", shared=True)
        answers = Queue("", exchange, asker)
        if scans:
            answers = Queue(f"{run}.responses", exchange, "responses", shared=True)
        if listens:
            return cls((requests,), answers, answers=True, scans=scans)
        return cls((answers,), requests, asker, scans=scans)

    @classmethod
    def _of_routed(cls, run: str, keys: Sequence[str]) -> LinkSide:
        exchange = exchange_of(run)
        consumed = [key.removeprefix(CONSUMED_PREFIX) for key in keys if key.startswith(CONSUMED_PREFIX)]
        queues = tuple(Queue(f"{run}.{name}", exchange, name.partition(SUBSCRIBER_MARK)[0]) for name in consumed)
        sent_to = tuple(key for key in keys if not key.startswith(CONSUMED_PREFIX))
        return cls(queues, Queue(name="", exchange=exchange, key="") if sent_to else None, keys=sent_to)

    @property
    def declares(self) -> tuple[Queue, ...]:
        """The queues to declare: this end's own, then the named one it publishes to: either end may come first."""
        target = self.publishes_to
        if target is None or not target.name:
            return self.consumes
        return (*self.consumes, target)

    def route(self, delivery: Delivery) -> Route:
        """The route of this end's messages; empty if it publishes nothing."""
        to = self.publishes_to
        if to is None:
            return Route(exchange="", key="", mandatory=False)
        return Route(
            exchange=to.exchange.name,
            key=to.key,
            mandatory=delivery.confirms,
            asker=self.asker,
            reply_to="" if self.scans else self.asker,
            answers=self.answers,
            first_is_mandatory=self.publishes_to_topic and not delivery.confirms,
            keys=self.keys,
        )

    @property
    def publishes_to_topic(self) -> bool:
        return self.publishes_to is not None and self.publishes_to.exchange.kind == Pattern.TOPIC.value

    @property
    def deletes(self) -> list[str]:
        """Named queues that are of no use once this end has gone."""
        queues = [queue for queue in self.consumes if not queue.shared]
        if self.answers and self.publishes_to is not None:
            queues.append(self.publishes_to)  # a scan's responses
        return [queue.name for queue in queues if queue.name]

    @property
    def exchanges(self) -> set[Exchange]:
        return {queue.exchange for queue in (*self.consumes, self.publishes_to) if queue is not None}


def _between(run: str, pattern: Pattern, pair: str) -> tuple[Queue | None, Queue | None]:
    """The listener's queue and the connector's. Pairs with names share a run's exchange."""

    def queue(name: str, shared: bool = False) -> Queue:
        key = f"{pair}.{name}" if pair else name
        return Queue(f"{run}.{key}", exchange_of(run), key, shared)

    match pattern:
        case Pattern.FAN_IN:
            return queue("statistics"), queue("reply")._replace(name="")
        case Pattern.QUEUE:
            return queue("work", shared=True), None
        case _:
            return queue("order"), queue("trade")


def queue_arguments(queue: Queue, delivery: Delivery) -> dict[str, object]:
    """The arguments of the queue's declaration, which are the same at both ends."""
    if not queue.name:
        return {"exclusive": True, "auto_delete": True}
    if delivery.queue == CLASSIC:
        arguments: dict[str, object] = {"x-expires": UNUSED_MS}
        return {"durable": delivery.durable, "auto_delete": not delivery.confirms, "arguments": arguments}
    expires = {} if delivery.queue == STREAM else {"x-expires": UNUSED_MS}  # a stream stays until it is deleted
    return {"durable": True, "arguments": {"x-queue-type": delivery.queue, **expires}}


def check_kind(kind: str, properties: Mapping[str, Any], broker: BrokerAddress) -> None:
    """BadAddress if a broker of the reported product and version lacks this kind of queue."""
    product = properties.get("product", "a broker of unknown make")
    version = str(properties.get("version", ""))
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    kinds = [CLASSIC]
    if product == "RabbitMQ" and numbers:
        kinds = [name for name in QUEUES if numbers >= SINCE[name]]
    if kind not in kinds:
        raise BadAddress(
            f"{mask(broker.url)}: queue is {kind!r}, and the broker is {product} {version}".rstrip()
            + f", which has {' and '.join(kinds)}"
        )


def declare(session: BrokerSession, side: LinkSide, delivery: Delivery, until_ns: int) -> list[str]:
    """Declare an end's exchanges, queues and bindings; returns the queues' names, in the order of `side.declares`."""
    for exchange in side.exchanges:
        _declare_exchange(session, exchange, delivery, until_ns)
    if not side.declares:
        return []
    *others, last = side.declares
    names = [_declare_queue(session, queue, delivery) for queue in others]
    session.ask(lambda done: names.append(_declare_queue(session, last, delivery, done)), until_ns)
    return names


def _declare_exchange(session: BrokerSession, exchange: Exchange, delivery: Delivery, until_ns: int) -> None:
    declare = session.channel.exchange_declare
    durable = delivery.durable
    session.ask(
        lambda done: declare(exchange.name, exchange.kind, durable=durable, auto_delete=True, callback=done), until_ns
    )


def _declare_queue(
    session: BrokerSession, queue: Queue, delivery: Delivery, done: Callable[..., None] | None = None
) -> str:
    """Declare and bind a queue without waiting, as there may be thousands: an `ask` for the last shows all mistakes."""
    name = queue.name or f"{queue.exchange.name}.{secrets.token_hex(8)}"
    session.channel.queue_declare(name, **queue_arguments(queue, delivery))
    session.channel.queue_bind(name, queue.exchange.name, queue.key, callback=done)
    return name


def queue_length(session: BrokerSession, queue: str, until_ns: int) -> int:
    """The number of messages in a queue. TransportError without such a queue; the broker then closes the channel."""
    look = session.channel.queue_declare
    [declared] = session.ask(lambda done: look(queue, passive=True, callback=done), until_ns)
    return int(declared.method.message_count)


def consume(
    session: BrokerSession,
    queues: Sequence[tuple[str, Queue]],
    delivery: Delivery,
    message: Callable[..., None],
    until_ns: int,
) -> None:
    """Start the deliveries from all queues, on the session's one channel."""
    channel = session.channel
    if delivery.acks:
        session.ask(lambda done: channel.basic_qos(prefetch_count=delivery.prefetch, callback=done), until_ns)
    if delivery.queue != CLASSIC:
        _lock(session, queues, until_ns)

    def start(name: str, queue: Queue, done: Callable[..., None] | None = None) -> None:
        # Without this argument a stream delivers only messages that come from now on.
        arguments = {"x-stream-offset": "first"} if queue.name and delivery.queue == STREAM else None
        channel.basic_consume(name, message, not delivery.acks, not queue.shared, arguments=arguments, callback=done)

    *others, last = queues
    for name, queue in others:
        start(name, queue)
    session.ask(lambda done: start(*last, done), until_ns)


def _lock(session: BrokerSession, queues: Sequence[tuple[str, Queue]], until_ns: int) -> None:
    """Become the only consumer of quorum queues and streams. Only a classic queue refuses a second consumer itself.

    An exclusive queue beside each of them is the lock: nobody else can declare it while we are connected.
    """
    for name, queue in queues:
        if not queue.name or queue.shared:
            continue
        declare_own = partial(session.channel.queue_declare, f"{name}.owner", exclusive=True)
        session.ask(lambda done: declare_own(callback=done), until_ns)  # noqa: B023
