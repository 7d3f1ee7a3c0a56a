"""Opens the links of NATS: which class an end is, and to which subjects it subscribes before it says a word."""

from __future__ import annotations

import contextlib
import secrets
import time
from urllib.parse import quote

from transports.base import Address, BadAddress, CannotListen, Link, Pattern, PeerGone
from transports.nats import SHARED_PATTERNS
from transports.nats.carriers import CoreCarrier
from transports.nats.connection import Connection
from transports.nats.deliveries import DURABLE
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
from transports.nats.patterns import GROUP, ROLL_CALL, NatsConsumer, NatsPublisher, NatsQueuePublisher, NatsSharedLink
from transports.nats.protocol import FRAME_SUBSCRIPTION
from transports.nats.requests import NatsAnswerer
from transports.topics import check_key
from transports.waiting import Sleeper

PLACE_SUBSCRIPTION = 4
"""The server's answer to a new listener: whether another listener has its place."""


def quoted_token(token: str) -> str:
    """A token as one word of a subject."""
    return quote(token, safe="").replace(".", "%2E")


def _base(address: Address) -> str:
    """The first words of a conversation's subjects; two conversations never share them."""
    pair = quoted_token(address.options.get("pair", "1"))
    return f"exchange.{quoted_token(address.token)}.{address.pattern.value}.{pair}"


def _subscription(subject: str, number: int) -> bytes:
    """The control line of a subscription, which has a number."""
    return f"SUB {subject} {number}\r\n".encode()


def listen(address: Address) -> Link:
    """CannotListen if somebody listens there already; patterns with many listeners have no such limit."""
    base = _base(address)
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
        carrier.hear(f"{base}.in")
        if address.fan_in or not carrier.lends:
            carrier.publish_to(f"{base}.out")
    except BaseException:
        _close(connection, carrier)
        raise
    return NatsListener(address, base, connection, carrier)


def connect(address: Address, until_ns: int) -> Link:
    """Return once a listener has subscribed; it need not be served yet. PeerGone if none comes in time."""
    base = _base(address)
    name = secrets.token_hex(8)
    connection = Connection.open(address, until_ns)
    carrier: CoreCarrier | None = None
    try:
        if address.pattern in SHARED_PATTERNS:
            return _connect_beside_others(address, base, connection, name)
        _await_listener(connection, address, base, name, until_ns)
        carrier = _carrier(address, base, connection, name, until_ns)
        # Subscribe before the hello: a listener sends as soon as it has heard that.
        connection.write(_subscription(f"{base}.words.{name}", WORD_SUBSCRIPTION))
        carrier.hear_listener(name, address.fan_in)
        carrier.publish_to(f"{base}.in")
    except BaseException:
        _close(connection, carrier)
        raise
    return NatsConnector(address, base, connection, name, carrier)


def _carrier(address: Address, base: str, connection: Connection, name: str, until_ns: int) -> CoreCarrier:
    """The carrier of a pair or a fan-in; `name` is that of our end. BadAddress if the server lacks what it needs."""
    if address.options.get("delivery") == DURABLE:
        return JetStreamCarrier(address, connection, base, name, until_ns)
    return CoreCarrier(connection, base)


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
    """A consumer of a queue, or a publisher."""
    connection = Connection.open(address, time.monotonic_ns())
    try:
        words = _subscription(f"{base}.words", WORD_SUBSCRIPTION)
        if address.pattern is Pattern.QUEUE:
            frames = f"SUB {base}.queue {GROUP} {FRAME_SUBSCRIPTION}\r\n".encode()
            connection.ask(words + frames)
            return NatsConsumer(address, base, connection, GROUP)
        if address.pattern is Pattern.REQUESTS:
            connection.ask(words + f"SUB {base}.in {GROUP} {FRAME_SUBSCRIPTION}\r\n".encode())
            return NatsAnswerer(address, base, connection, GROUP)
        connection.publish_to(_subject_of_key(address, base))
        roll_call = f"PUB {base}.roll {len(ROLL_CALL)}\r\n".encode() + ROLL_CALL + b"\r\n"
        connection.ask(words + _subscription(f"{base}.in", FRAME_SUBSCRIPTION) + roll_call)
        return NatsPublisher(address, base, connection, "publisher")
    except BaseException:
        connection.close()
        raise


def _connect_beside_others(address: Address, base: str, connection: Connection, name: str) -> Link:
    """A publisher to a queue, an asker, or a subscriber to all publishers. The listeners may come later."""
    if address.pattern in (Pattern.QUEUE, Pattern.REQUESTS):
        if address.pattern is Pattern.REQUESTS:
            connection.publish_to(f"{base}.in {base}.answers.{name}")
        else:
            connection.publish_to(f"{base}.queue")
        connection.ask(_subscription(f"{base}.nobody.{name}.*", NOBODY_SUBSCRIPTION))
        has_consumers = not _has_no_listener(connection, base, name)
        connection.write(_subscription(f"{base}.words.{name}", WORD_SUBSCRIPTION))
        connection.write(_subscription(f"{base}.answers.{name}", FRAME_SUBSCRIPTION))
        return NatsQueuePublisher(address, base, connection, name, has_consumers)
    connection.publish_to(f"{base}.in")
    subjects = _subjects_of_subscriber(address, base)
    lines = [_subscription(subject, _frame_number(place)) for place, subject in enumerate(subjects)]
    connection.write(b"".join(lines) + _subscription(f"{base}.roll", WORD_SUBSCRIPTION))
    subscriber = NatsSharedLink(address, base, connection, name)
    subscriber.say_hello()
    return subscriber


def _frame_number(place: int) -> int:
    """The number of the subscription at a place; all of them begin with the digit of FRAME_SUBSCRIPTION."""
    return FRAME_SUBSCRIPTION if place == 0 else int(f"{FRAME_SUBSCRIPTION}{place}")


def _subject_of_key(address: Address, base: str) -> str:
    """The subject to which a publisher publishes. BadAddress for a bad key."""
    if address.pattern is not Pattern.TOPIC:
        return f"{base}.out"
    words = check_key(address.keys[0]).split(".")
    return ".".join([f"{base}.out", *map(_quoted, words)])


def _subjects_of_subscriber(address: Address, base: str) -> list[str]:
    """The subjects of a subscriber, each once. BadAddress for a pattern that NATS cannot express."""
    if address.pattern is not Pattern.TOPIC:
        return [f"{base}.out"]
    subjects: list[str] = []
    for pattern in address.keys:
        words = check_key(pattern).split(".")
        if "#" in words[:-1]:
            raise BadAddress(f"NATS has > at the end of a pattern only, so {pattern!r} may have a # at its end only")
        if words[-1] == "#":  # of AMQP, which stands for no word, too
            stem = _subject(base, words[:-1])
            subjects += [stem, f"{stem}.>"]
        else:
            subjects.append(_subject(base, words))
    return list(dict.fromkeys(subjects))


def _subject(base: str, words: list[str]) -> str:
    """The subject of a pattern's words, each quoted but for the wildcard `*`: NATS forbids some characters."""
    return ".".join([f"{base}.out", *(word if word == "*" else _quoted(word) for word in words)])


def _quoted(word: str) -> str:
    """A word of a key as NATS takes it; an empty one becomes a lone %."""
    return quote(word, safe="") or "%"
