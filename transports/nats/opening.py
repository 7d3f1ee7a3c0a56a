"""Opens the links of NATS: which class an end is, and to which subjects it subscribes before it says a word."""

from __future__ import annotations

import contextlib
import secrets
import time

from transports.base import Address, CannotListen, Link, Pattern, PeerGone
from transports.nats import SHARED_PATTERNS
from transports.nats.carriers import CoreCarrier
from transports.nats.connection import Connection
from transports.nats.deliveries import DURABLE, NATS_PY
from transports.nats.jetstream import JetStreamCarrier
from transports.nats.link import (
    ARE_YOU_THERE,
    HELLO_EVERY_NS,
    LISTENER,
    NO_RESPONDERS,
    NOBODY_SUBSCRIPTION,
    WORD_SUBSCRIPTION,
    NatsConnector,
    NatsListener,
)
from transports.nats.patterns import (
    ROLL_CALL,
    NatsAnswerer,
    NatsConsumer,
    NatsPublisher,
    NatsQueuePublisher,
    NatsSharedLink,
)
from transports.nats.requests import AnsweringCarrier
from transports.nats.subjects import base_of, subject_of_publisher, subjects_of_subscriber
from transports.waiting import Sleeper

PLACE_SUBSCRIPTION = 4
"""The server's answer to a new listener: whether another listener has its place."""


def _subscription(subject: str, number: int) -> bytes:
    """The control line of a subscription, which has a number."""
    return f"SUB {subject} {number}\r\n".encode()


def listen(address: Address) -> Link:
    """CannotListen if somebody listens there already; patterns with many listeners have no such limit."""
    base = base_of(address)
    if address.pattern in SHARED_PATTERNS:
        return _listen_beside_others(address, base)
    connection = Connection.open(address, time.monotonic_ns())
    carrier: CoreCarrier | None = None
    try:
        asker = secrets.token_hex(8)
        connection.ask(_subscription(f"{base}.nobody.{asker}.*", PLACE_SUBSCRIPTION))
        if not _has_no_listener(connection, base, asker):
            raise CannotListen(
                f"{address.masked_url} has a listener of this name already: choose another server or name"
            )
        carrier = _carrier(address, base, connection, asker, time.monotonic_ns())
        connection.write(
            _subscription(f"{base}.nobody.{LISTENER}.*", NOBODY_SUBSCRIPTION)
            + _subscription(f"{base}.words", WORD_SUBSCRIPTION)
        )
        carrier.subscribe_alone(f"{base}.in")
        if address.fan_in or not carrier.lends:
            carrier.publish_to(f"{base}.out")
    except BaseException:
        _close(connection, carrier)
        raise
    return NatsListener(address, base, connection, carrier)


def connect(address: Address, until_ns: int) -> Link:
    """Return once a listener has subscribed; it need not be served yet. PeerGone if none comes in time."""
    base = base_of(address)
    name = secrets.token_hex(8)
    connection = Connection.open(address, until_ns)
    carrier: CoreCarrier | None = None
    try:
        if address.pattern in SHARED_PATTERNS:
            carrier = _carrier(address, base, connection, name, until_ns)
            return _connect_beside_others(address, base, connection, name, carrier)
        _await_listener(connection, address, base, name, until_ns)
        carrier = _carrier(address, base, connection, name, until_ns)
        # Subscribe before the hello: a listener sends as soon as it has heard that.
        connection.write(_subscription(f"{base}.words.{name}", WORD_SUBSCRIPTION))
        carrier.subscribe_to_listener(name, address.fan_in)
        carrier.publish_to(f"{base}.in")
    except BaseException:
        _close(connection, carrier)
        raise
    return NatsConnector(address, base, connection, name, carrier)


def _carrier(address: Address, base: str, connection: Connection, name: str, until_ns: int) -> CoreCarrier:
    """The carrier of our end, which has this name. BadAddress if the server lacks what the carrier needs."""
    if address.options.get("delivery") == DURABLE:
        return JetStreamCarrier(address, connection, base, name, until_ns)
    if address.options.get("client") == NATS_PY:
        return _by_nats_py(address, connection, base, answers=False)
    return CoreCarrier(connection, base)


def _answering_carrier(address: Address, base: str, connection: Connection) -> CoreCarrier:
    """The carrier of the end that answers requests."""
    if address.options.get("client") == NATS_PY:
        return _by_nats_py(address, connection, base, answers=True)
    return AnsweringCarrier(connection, base)


def _by_nats_py(address: Address, connection: Connection, base: str, answers: bool) -> CoreCarrier:
    """The carrier in which nats-py handles each frame."""
    from transports.nats.nats_py import NatsPyCarrier  # only this client needs the library

    return NatsPyCarrier(address, connection, base, answers)


def _close(connection: Connection, carrier: CoreCarrier | None) -> None:
    """Close both, after an error."""
    if carrier is not None:
        with contextlib.suppress(PeerGone):
            carrier.close()
    connection.close()


def _await_listener(connection: Connection, address: Address, base: str, name: str, until_ns: int) -> None:
    """Return once a listener has subscribed. PeerGone if none has in time."""
    connection.ask(_subscription(f"{base}.nobody.{name}.*", NOBODY_SUBSCRIPTION))
    while _has_no_listener(connection, base, name):
        if time.monotonic_ns() >= until_ns:
            raise PeerGone(f"nobody listens at the NATS server {address.masked_url}")
        Sleeper([]).sleep(time.monotonic_ns() + HELLO_EVERY_NS)


def _has_no_listener(connection: Connection, base: str, name: str) -> bool:
    """Ask whether a listener is there. True if the server answers that nobody has subscribed."""
    line = f"PUB {base}.words {base}.nobody.{name}.{LISTENER} {len(ARE_YOU_THERE)}\r\n".encode()
    answers = connection.ask(line + ARE_YOU_THERE + b"\r\n")
    return any(answer.operation == "HMSG" and answer.payload.startswith(NO_RESPONDERS) for answer in answers)


def _listen_beside_others(address: Address, base: str) -> Link:
    """A consumer of a queue, one that answers requests, or a publisher."""
    name = secrets.token_hex(8)
    connection = Connection.open(address, time.monotonic_ns())
    carrier: CoreCarrier | None = None
    words = _subscription(f"{base}.words", WORD_SUBSCRIPTION)
    try:
        # Frames may come as soon as somebody sees that we hear words: so subscribe to frames first.
        if address.pattern is Pattern.REQUESTS:
            carrier = _answering_carrier(address, base, connection)
            carrier.subscribe_in_group(f"{base}.in")
            connection.write(words)
            return NatsAnswerer(address, base, connection, name, carrier)
        carrier = _carrier(address, base, connection, name, time.monotonic_ns())
        if address.pattern is Pattern.QUEUE:
            carrier.subscribe_in_group(f"{base}.queue")
            connection.write(words)
            return NatsConsumer(address, base, connection, name, carrier)
        carrier.publish_to(subject_of_publisher(address, base))
        carrier.subscribe_with_others([f"{base}.in"])
        roll_call = f"PUB {base}.roll {len(ROLL_CALL)}\r\n".encode() + ROLL_CALL + b"\r\n"
        connection.write(words + roll_call)
        return NatsPublisher(address, base, connection, name, carrier)
    except BaseException:
        _close(connection, carrier)
        raise


def _connect_beside_others(
    address: Address, base: str, connection: Connection, name: str, carrier: CoreCarrier
) -> Link:
    """A publisher to a queue, an asker, or a subscriber to all publishers. The listeners may come later."""
    if address.pattern in (Pattern.QUEUE, Pattern.REQUESTS):
        connection.ask(_subscription(f"{base}.nobody.{name}.*", NOBODY_SUBSCRIPTION))
        has_consumers = not _has_no_listener(connection, base, name)
        connection.write(_subscription(f"{base}.words.{name}", WORD_SUBSCRIPTION))
        if address.pattern is Pattern.REQUESTS:
            answers = f"{base}.answers.{name}"
            carrier.subscribe_alone(answers)
            carrier.publish_to(f"{base}.in", reply_to=answers)
        else:
            carrier.publish_to(f"{base}.queue")
        return NatsQueuePublisher(address, base, connection, name, carrier, has_consumers)
    carrier.publish_to(f"{base}.in")
    carrier.subscribe_with_others(subjects_of_subscriber(address, base))
    connection.write(_subscription(f"{base}.roll", WORD_SUBSCRIPTION))
    subscriber = NatsSharedLink(address, base, connection, name, carrier)
    subscriber.say_hello()
    return subscriber
