"""Links of NATS for the patterns that have many listeners: queues, fanout and topics.

    queue     consumers  frames    <base>.queue           one queue group: each message goes to one consumer
    fanout    publisher  replies   <base>.in              from every subscriber
              subscriber frames    <base>.out
    topic     subscriber frames    <base>.out.<key>       a subscription for each pattern, with NATS's wildcards
    listeners            words     <base>.words           the hello of each connector
    connectors           words     <base>.roll            the roll-call of a publisher that has come later
                                   <base>.words.<name>    a consumer's welcome

A subscriber says hello on the connection on which it has subscribed, so a publisher that has heard it knows that the
subscriber will miss no message. NATS drops what nobody has subscribed to, so a queue's publisher sends once a consumer
has welcomed it.
"""

from __future__ import annotations

import time
from urllib.parse import quote

from transports.base import Address, BadAddress, Link, Pattern, PeerGone, TransportError
from transports.frames import FrameBatch
from transports.nats.connection import Connection
from transports.nats.link import (
    HELLO,
    HELLO_EVERY_NS,
    NOBODY_SUBSCRIPTION,
    WELCOME,
    WORD_SUBSCRIPTION,
    NatsLink,
    has_no_listener,
    subscription,
)
from transports.nats.protocol import FRAME_SUBSCRIPTION
from transports.topics import check_key

NEVER_NS = 1 << 62
"""A time that does not come."""
ROLL_CALL = b"who"
"""The word with which a publisher asks for the hello of subscribers that came before it."""
GROUP = "consumers"
"""The queue group of a queue's consumers, and of those that answer requests."""


class NatsSharedLink(NatsLink):
    """An end among many: it does not ask whether the others are there, since any of them may come and go."""

    def __init__(self, address: Address, base: str, connection: Connection, name: str) -> None:
        super().__init__(address, base, connection, name)
        self._next_check_ns = NEVER_NS

    def _check_peers(self) -> None:
        """Any of the others may come and go."""

    def _handle_word(self, word: bytes, name: str) -> None:  # noqa: ARG002
        """Say hello to a publisher that asks."""
        if word == ROLL_CALL:
            self.say_hello()

    def say_hello(self) -> None:
        self._publish_words(f"{self._base}.words", HELLO + b" " + self._name.encode())

    def _handle_absence(self, name: str) -> None:
        """Any of the others may come and go."""

    @property
    def _may_send(self) -> bool:
        return True


class NatsConsumer(NatsSharedLink):
    """A consumer of a queue."""

    def _handle_word(self, word: bytes, name: str) -> None:
        if word == HELLO and name.isalnum():
            self._publish_words(f"{self._base}.words.{name}", WELCOME)

    def send(self, batch: FrameBatch, first: int) -> int:  # noqa: ARG002
        raise TransportError(f"a consumer of the queue at {self.url} only receives")


class NatsQueuePublisher(NatsSharedLink):
    """A publisher to a queue, or an asker. It says hello until a consumer welcomes it, and sends from then on."""

    def __init__(self, address: Address, base: str, connection: Connection, name: str, has_consumers: bool) -> None:
        super().__init__(address, base, connection, name)
        self._has_consumers = has_consumers
        if not has_consumers:
            self._next_check_ns = 0

    def _check_peers(self) -> None:
        if time.monotonic_ns() >= self._next_check_ns:
            self._next_check_ns = time.monotonic_ns() + HELLO_EVERY_NS
            self.say_hello()

    def _handle_word(self, word: bytes, name: str) -> None:  # noqa: ARG002
        if word == WELCOME:
            self._has_consumers = True
            self._next_check_ns = NEVER_NS

    @property
    def _may_send(self) -> bool:
        return self._has_consumers

    def excuse(self) -> str:
        return "" if self._has_consumers else f" (nobody consumes at the NATS server {self._address.masked_url})"


class NatsPublisher(NatsSharedLink):
    """A publisher, which counts the subscribers that have said hello."""

    def __init__(self, address: Address, base: str, connection: Connection, name: str) -> None:
        super().__init__(address, base, connection, name)
        self._subscribers: set[str] = set()

    def _handle_word(self, word: bytes, name: str) -> None:
        if word == HELLO:
            self._subscribers.add(name)

    def await_peers(self, count: int, until_ns: int) -> None:
        """Return once `count` subscribers have said hello, so that they will miss no frame. PeerGone if they do not."""
        while len(self._subscribers) < count:
            if time.monotonic_ns() >= until_ns:
                raise PeerGone(f"{len(self._subscribers)} of {count} subscribers came to {self.url} in time")
            self.wait(until_ns)


def listen_beside_others(address: Address, base: str) -> Link:
    """A consumer of a queue, or a publisher."""
    connection = Connection.open(address, time.monotonic_ns())
    try:
        words = subscription(f"{base}.words", WORD_SUBSCRIPTION)
        if address.pattern is Pattern.QUEUE:
            frames = f"SUB {base}.queue {GROUP} {FRAME_SUBSCRIPTION}\r\n".encode()
            connection.ask(words + frames)
            return NatsConsumer(address, base, connection, GROUP)
        if address.pattern is Pattern.REQUESTS:
            from transports.nats.requests import NatsAnswerer

            connection.ask(words + f"SUB {base}.in {GROUP} {FRAME_SUBSCRIPTION}\r\n".encode())
            return NatsAnswerer(address, base, connection, GROUP)
        connection.publish_to(_subject_of_key(address, base))
        roll_call = f"PUB {base}.roll {len(ROLL_CALL)}\r\n".encode() + ROLL_CALL + b"\r\n"
        connection.ask(words + subscription(f"{base}.in", FRAME_SUBSCRIPTION) + roll_call)
        return NatsPublisher(address, base, connection, "publisher")
    except BaseException:
        connection.close()
        raise


def connect_beside_others(address: Address, base: str, connection: Connection, name: str) -> Link:
    """A publisher to a queue, an asker, or a subscriber to all publishers. The listeners may come later."""
    if address.pattern in (Pattern.QUEUE, Pattern.REQUESTS):
        if address.pattern is Pattern.REQUESTS:
            connection.publish_to(f"{base}.in {base}.answers.{name}")
        else:
            connection.publish_to(f"{base}.queue")
        connection.ask(subscription(f"{base}.nobody.{name}.*", NOBODY_SUBSCRIPTION))
        has_consumers = not has_no_listener(connection, base, name)
        connection.write(subscription(f"{base}.words.{name}", WORD_SUBSCRIPTION))
        connection.write(subscription(f"{base}.answers.{name}", FRAME_SUBSCRIPTION))
        return NatsQueuePublisher(address, base, connection, name, has_consumers)
    connection.publish_to(f"{base}.in")
    subjects = _subjects_of_subscriber(address, base)
    lines = [subscription(subject, _frame_number(place)) for place, subject in enumerate(subjects)]
    connection.write(b"".join(lines) + subscription(f"{base}.roll", WORD_SUBSCRIPTION))
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
