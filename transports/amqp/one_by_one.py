"""The clients `pika` and `joined`: pika publishes, and puts together, each message by itself.

`pika` is a SelectConnection as its documentation shows it: three writes a message. `joined` hands pika our stream, so
that a batch leaves in one write.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import pika
from pika import spec
from pika.channel import Channel

from transports.amqp.client import Client
from transports.amqp.delivery import Delivery
from transports.amqp.loops import Loop, OwnLoop, PikaLoop
from transports.amqp.topology import Route
from transports.amqp.wire import PERSISTENT
from transports.base import PeerGone
from transports.frames import FrameBatch


class OneByOneClient(Client):
    def __init__(self, loop: Loop, route: Route, delivery: Delivery) -> None:
        super().__init__(loop, route, delivery)
        self._mode = PERSISTENT if delivery.durable else None
        self._properties = pika.BasicProperties(delivery_mode=self._mode)
        self._waiting: deque[bytes] = deque()
        self._returns: deque[pika.BasicProperties] = deque()
        self._confirmed = self._refused = self._redelivered = 0
        self._early: set[int] = set()

    def opened(self, channel: Channel) -> None:
        self._channel = channel

    def message(self, _channel: Channel, method: Any, properties: Any, body: bytes) -> None:
        self._redelivered += method.redelivered
        self._waiting.append(body)
        if self._route.answers:
            self._returns.append(properties)
        elif self._route.asker and not (properties.correlation_id or "").startswith(self._route.asker):
            raise PeerGone(f"an answer came to what was not asked here: {properties.correlation_id!r}")

    def _envelope(self) -> tuple[str, pika.BasicProperties]:
        """The next message's key and properties."""
        key, mode = self._route.key, self._mode
        if self._route.answers:
            asked = self._returns.popleft()
            return key or asked.reply_to or "", pika.BasicProperties(
                delivery_mode=mode, correlation_id=asked.correlation_id
            )
        if self._route.asker:
            number = f"{self._route.asker}{self.published + 1:016x}"
            return key, pika.BasicProperties(
                delivery_mode=mode, correlation_id=number, reply_to=self._route.reply_to or None
            )
        return key, self._properties

    def publish(self, batch: FrameBatch, first: int, last: int) -> int:
        for index in range(first, last):
            key, properties = self._envelope()
            mandatory = self._route.mandatory or (self._route.tries and not self.published)
            self._channel.basic_publish(self._route.exchange, key, batch[index], properties, mandatory)
            self.published += 1
        return last

    def take(self, batch: FrameBatch) -> None:
        if not self._waiting:
            self._loop.serve()
        while self._waiting and batch.count < batch.capacity_frames:
            body = self._waiting[0]
            if len(body) > batch.largest_frame:
                self.too_long += 1
                self._forget()
            elif batch.used_bytes + len(body) > len(batch.buffer):
                return
            else:
                batch.append(body)
                self.taken += 1
            self._waiting.popleft()

    def _forget(self) -> None:
        """Of what was the oldest waiting message, where answers go: those after it stay."""
        if self._route.answers:
            del self._returns[len(self._returns) - len(self._waiting)]

    def serve(self) -> None:
        self._loop.serve()

    @property
    def has_more(self) -> bool:
        return bool(self._waiting)

    def acknowledge(self) -> None:
        self._channel.basic_ack(self.taken + self.too_long, multiple=True)

    def settled(self, frame: Any) -> None:
        """The broker's Ack or Nack of publishes."""
        tag, multiple = frame.method.delivery_tag, frame.method.multiple
        if isinstance(frame.method, spec.Basic.Nack):
            self._refused += max(tag - self._confirmed, 0) if multiple else 1
        if multiple:
            self._early = {one for one in self._early if one > tag}
            self._confirmed = max(self._confirmed, tag)
        else:
            self._early.add(tag)
        while self._confirmed + 1 in self._early:
            self._confirmed += 1
            self._early.discard(self._confirmed)

    @property
    def confirmed(self) -> int:
        return self._confirmed

    @property
    def refused(self) -> int:
        return self._refused

    @property
    def redelivered(self) -> int:
        return self._redelivered


class JoinedClient(OneByOneClient):
    loop_of = OwnLoop


class PikaClient(OneByOneClient):
    loop_of = PikaLoop
