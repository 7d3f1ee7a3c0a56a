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

from transports.base import Address, PeerGone, TransportError
from transports.frames import FrameBatch
from transports.nats.carriers import CoreCarrier
from transports.nats.connection import Connection
from transports.nats.link import HELLO, HELLO_EVERY_NS, WELCOME, NatsLink

NEVER_NS = 1 << 62
"""A time that does not come."""
ROLL_CALL = b"who"
"""The word with which a publisher asks for the hello of subscribers that came before it."""


class NatsSharedLink(NatsLink):
    """An end among many: it does not ask whether the others are there, since any of them may come and go."""

    def __init__(self, address: Address, base: str, connection: Connection, name: str, carrier: CoreCarrier) -> None:
        super().__init__(address, base, connection, name, carrier)
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


class NatsAnswerer(NatsSharedLink):
    """The end that gets requests, and sends a frame for each, in their order."""

    def _handle_word(self, word: bytes, name: str) -> None:
        """Welcome an asker that says hello."""
        if word == HELLO and name.isalnum():
            self._publish_words(f"{self._base}.words.{name}", WELCOME)


class NatsConsumer(NatsAnswerer):
    """A consumer of a queue, which sends nothing."""

    def send(self, batch: FrameBatch, first: int) -> int:  # noqa: ARG002
        raise TransportError(f"a consumer of the queue at {self.url} only receives")


class NatsQueuePublisher(NatsSharedLink):
    """A publisher to a queue, or an asker. It says hello until a consumer welcomes it, and sends from then on."""

    def __init__(
        self,
        address: Address,
        base: str,
        connection: Connection,
        name: str,
        carrier: CoreCarrier,
        has_consumers: bool,
    ) -> None:
        super().__init__(address, base, connection, name, carrier)
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

    def __init__(self, address: Address, base: str, connection: Connection, name: str, carrier: CoreCarrier) -> None:
        super().__init__(address, base, connection, name, carrier)
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
