"""`Client`, the interface of an AMQP client to its link, and the client in which pika handles each message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

import pika
from pika import spec
from pika.channel import Channel

from transports.amqp import wire
from transports.amqp.address import Delivery
from transports.amqp.loops import Loop
from transports.amqp.topology import Route
from transports.base import PeerGone
from transports.frames import FrameBatch
from transports.lending import Lent


class Client(ABC):
    """Publishes batches on one route, and takes the deliveries of one channel.

    Counts messages: published, taken, too_long (dropped, since no batch takes them), redelivered (delivered before),
    confirmed (all publishes up to this number are settled), refused (publishes that the broker did not take).
    """

    confirmed = 0
    refused = 0
    redelivered = 0

    def __init__(self, loop: Loop, route: Route, delivery: Delivery) -> None:
        self._loop = loop
        self._route = route
        self._delivery = delivery
        self.published = 0
        self.taken = 0
        self.too_long = 0

    @classmethod  # noqa: B027 (most clients have no kernels)
    def warm(cls, route: Route) -> None:
        """Compile the kernels for a route, or load them from disk."""

    @abstractmethod
    def on_channel_open(self, channel: Channel) -> None:
        """Prepare for messages on a channel that has just opened."""

    @abstractmethod
    def on_message(self, _channel: Channel, method: Any, properties: Any, body: bytes) -> None:
        """Take a message that pika has put together."""

    @abstractmethod
    def note_confirm(self, frame: Any) -> None:
        """Count the broker's Ack or Nack of publishes. Kernels that read the socket count without this call."""

    @abstractmethod
    def publish(self, batch: FrameBatch, first: int, last: int) -> int:
        """Write messages first..last-1; returns the first message without room."""

    @abstractmethod
    def take(self, batch: FrameBatch) -> None:
        """Append the messages that have come, as far as they fit."""

    def lend(self, settle: Callable[[], None]) -> Lent | None:  # noqa: ARG002
        """Return compiled calls that need no Python; see transports.lending.lent_by.

        None if this client lends none, or none now.
        """
        return None

    def settle(self) -> None:  # noqa: B027 (most clients lend nothing)
        """Do the work that lent calls left to Python."""

    def count_lent(self) -> None:  # noqa: B027
        """Count what lent calls published."""

    def serve(self) -> None:
        """Read the bytes that have come: set messages aside, and count confirms."""
        self._loop.serve()

    @property
    @abstractmethod
    def has_more(self) -> bool:
        """True if `take` has messages to give without waiting."""

    @abstractmethod
    def acknowledge(self, count: int) -> None:
        """Acknowledge the first `count` deliveries."""


class OneByOneClient(Client):
    def __init__(self, loop: Loop, route: Route, delivery: Delivery) -> None:
        super().__init__(loop, route, delivery)
        self._mode = wire.PERSISTENT if delivery.durable else None
        self._properties = pika.BasicProperties(delivery_mode=self._mode)
        self._waiting: deque[bytes] = deque()
        """Messages that `take` has not given to a batch."""
        self._requests: deque[pika.BasicProperties] = deque()
        """The properties of requests without an answer, oldest first."""
        self._settled_early: set[int] = set()
        """The numbers of publishes that the broker settled before some that were published earlier."""

    def on_channel_open(self, channel: Channel) -> None:
        self._channel = channel

    def on_message(self, _channel: Channel, method: Any, properties: Any, body: bytes) -> None:
        self.redelivered += method.redelivered
        self._waiting.append(body)
        if self._route.answers:
            self._requests.append(properties)
        elif self._route.asker and not (properties.correlation_id or "").startswith(self._route.asker):
            raise PeerGone(f"an answer came to no request of this client: {properties.correlation_id!r}")

    def _envelope(self, body: bytes) -> tuple[str, pika.BasicProperties]:
        """The next message's key and properties."""
        if self._route.keys:
            return self._key_of(body), self._properties
        key = self._route.key
        mode = self._mode
        if self._route.answers:
            request = self._requests.popleft()
            key_of_answer = key or request.reply_to or ""
            properties = pika.BasicProperties(delivery_mode=mode, correlation_id=request.correlation_id)
            return key_of_answer, properties
        if self._route.asker:
            request_id = f"{self._route.asker}{self.published + 1:016x}"
            reply_to = self._route.reply_to or None
            return key, pika.BasicProperties(delivery_mode=mode, correlation_id=request_id, reply_to=reply_to)
        return key, self._properties

    def _key_of(self, body: bytes) -> str:
        """The key whose number begins the message. ValueError if no key has that number."""
        keys = self._route.keys
        number = int.from_bytes(body[: wire.KEY_NUMBER_BYTES], "little")
        if len(body) < wire.KEY_NUMBER_BYTES or number >= len(keys):
            raise ValueError(wire.wrong_key_number(body, len(keys)))
        return keys[number]

    def publish(self, batch: FrameBatch, first: int, last: int) -> int:
        for index in range(first, last):
            body = batch[index]
            key, properties = self._envelope(body)
            # A mandatory first message tells whether any queue takes the key.
            is_trial = self._route.first_is_mandatory and self.published == 0
            mandatory = self._route.mandatory or is_trial
            self._channel.basic_publish(self._route.exchange, key, body, properties, mandatory)
            self.published += 1
        return last

    def take(self, batch: FrameBatch) -> None:
        if not self._waiting:
            self._loop.serve()
        while self._waiting:
            body = self._waiting[0]
            if len(body) > batch.largest_frame:
                self.too_long += 1
                self._forget_request()
            elif not batch.has_room(len(body)):
                return
            else:
                batch.append(body)
                self.taken += 1
            self._waiting.popleft()

    def _forget_request(self) -> None:
        """Drop the request of the oldest waiting message, and keep those of later messages."""
        if self._route.answers:
            # The requests of messages that were given to a batch come before those of the waiting messages.
            given = len(self._requests) - len(self._waiting)
            del self._requests[given]

    @property
    def has_more(self) -> bool:
        return bool(self._waiting)

    def acknowledge(self, count: int) -> None:
        self._channel.basic_ack(count, multiple=True)

    def note_confirm(self, frame: Any) -> None:
        tag = frame.method.delivery_tag
        if frame.method.multiple:
            newly_settled = set(range(self.confirmed + 1, tag + 1)) - self._settled_early
        else:
            newly_settled = {tag}
        if isinstance(frame.method, spec.Basic.Nack):
            self.refused += len(newly_settled)
        self._settled_early |= newly_settled
        while self.confirmed + 1 in self._settled_early:
            self.confirmed += 1
            self._settled_early.discard(self.confirmed)
