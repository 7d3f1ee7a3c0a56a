"""Links of Redis for the patterns that have many listeners, and for requests.

    queue     consumers  frames    <base>:queue           one stream, one group: each entry goes to one consumer
    fanout    publisher  replies   <base>:in              from every subscriber
              subscriber frames    <base>:out             a channel, or a stream on which each has a group of its own
    topic     subscriber frames    <base>:out:<key>       a channel for each key; a # needs PSUBSCRIBE
    requests  answerer   frames    <base>:in:<name>       the channel names the asker, to which the answer goes
              asker      answers   <base>:answers:<name>
    listeners            words     <base>:words           the hello of each connector
    connectors           words     <base>:roll            the roll-call of a publisher that has come later
                                   <base>:words:<name>    the welcome of the end that answers

A subscriber says hello once the server has subscribed it, so a publisher that has heard it knows that the subscriber
will miss no message. A channel keeps nothing, so an asker sends once it is welcome. A queue's stream keeps messages.
"""

from __future__ import annotations

import time

from transports.base import Address, PeerGone, TransportError
from transports.blocks import lay_out_answers
from transports.frames import FrameBatch
from transports.redis import places
from transports.redis.carriers import Carrier, PublishedChannels
from transports.redis.link import HELLO, HELLO_EVERY_NS, WELCOME, RedisLink
from transports.redis.wires import Wires
from transports.server_stream import UNSENT_END

NEVER_NS = 1 << 62
"""A time that does not come."""
ROLL_CALL = b"who"
"""The word with which a publisher asks for the hello of subscribers that came before it."""


class RedisSharedLink(RedisLink):
    """An end among many: it does not ask whether the others are there, since any of them may come and go."""

    def __init__(self, address: Address, base: str, wires: Wires, carrier: Carrier, name: str) -> None:
        super().__init__(address, base, wires, carrier)
        self._name = name
        self._next_check_ns = NEVER_NS

    def _check_peers(self) -> None:
        """Any of the others may come and go."""

    def _handle_word(self, word: bytes, name: str) -> None:  # noqa: ARG002
        """Say hello to a publisher that asks."""
        if word == ROLL_CALL:
            self.say_hello()

    def say_hello(self) -> None:
        self._publish(f"{self._base}:words", HELLO + b" " + self._name.encode())

    def _handle_absence(self, name: str) -> None:
        """Any of the others may come and go."""

    @property
    def _may_send(self) -> bool:
        return True


class RedisConsumer(RedisSharedLink):
    """A consumer of a queue."""

    def send(self, batch: FrameBatch, first: int) -> int:  # noqa: ARG002
        raise TransportError(f"a consumer of the queue at {self.url} only receives")


class RedisAsker(RedisSharedLink):
    """An asker. Unless somebody answers already, it says hello until it is welcome, and sends from then on."""

    def __init__(
        self, address: Address, base: str, wires: Wires, carrier: Carrier, name: str, is_welcome: bool
    ) -> None:
        super().__init__(address, base, wires, carrier, name)
        self._is_welcome = is_welcome
        if not is_welcome:
            self._next_check_ns = 0

    def _check_peers(self) -> None:
        if time.monotonic_ns() >= self._next_check_ns:
            self._next_check_ns = time.monotonic_ns() + HELLO_EVERY_NS
            self.say_hello()

    def _handle_word(self, word: bytes, name: str) -> None:  # noqa: ARG002
        if word == WELCOME:
            self._is_welcome = True
            self._next_check_ns = NEVER_NS

    @property
    def _may_send(self) -> bool:
        return self._is_welcome

    def excuse(self) -> str:
        return "" if self._is_welcome else f" (nobody answers at the Redis server {self._address.masked_url})"


class RedisPublisher(RedisSharedLink):
    """A publisher, which counts the subscribers that have said hello."""

    def __init__(self, address: Address, base: str, wires: Wires, carrier: Carrier, name: str) -> None:
        super().__init__(address, base, wires, carrier, name)
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


class RedisAnswerer(RedisSharedLink):
    """The end that gets requests, and sends a frame for each, in their order."""

    def __init__(self, address: Address, base: str, wires: Wires, carrier: PublishedChannels, name: str) -> None:
        super().__init__(address, base, wires, carrier, name)
        self._askers = carrier.addresses
        self._lay_out(FrameBatch(0, 1, 1), 0)

    def _handle_word(self, word: bytes, name: str) -> None:
        if word == HELLO and name.isalnum():
            self._publish(f"{self._base}:words:{name}", WELCOME)

    def _lay_out(self, batch: FrameBatch, first: int) -> int:
        """Write answers into the outgoing bytes; returns the first that found no room."""
        commands = self._wires.commands
        askers = self._askers
        taken, used = lay_out_answers(
            batch.buffer,
            batch.offsets,
            first,
            batch.count,
            askers.addresses,
            askers.lengths,
            askers.counts,
            commands.outgoing,
            int(commands.bounds[UNSENT_END]),
        )
        commands.bounds[UNSENT_END] = used
        return int(taken)

    def send(self, batch: FrameBatch, first: int) -> int:
        commands = self._wires.commands
        commands.flush()
        if commands.has_waiting_commands:
            return first
        taken = self._lay_out(batch, first)
        self._wires.numbers[places.SENT] += taken - first
        commands.flush()
        self._take_replies()
        return taken
