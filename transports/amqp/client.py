"""What a link needs of a client: publish a batch with one key, take what one consumer was given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from pika.channel import Channel

from transports.amqp.delivery import Delivery
from transports.amqp.loops import Loop
from transports.amqp.topology import Route
from transports.frames import FrameBatch


class Client(ABC):
    """Counts messages: published, taken, too_long for a batch (and dropped), redelivered (someone had them before)."""

    loop_of: ClassVar[type[Any]]
    """The loop on which it lives."""

    def __init__(self, loop: Loop, route: Route, delivery: Delivery) -> None:
        self._loop, self._route, self._delivery = loop, route, delivery
        self.published = self.taken = self.too_long = 0

    @abstractmethod
    def opened(self, channel: Channel) -> None:
        """The channel is there: prepare for messages."""

    @abstractmethod
    def message(self, _channel: Channel, method: Any, _properties: Any, body: bytes) -> None:
        """A message that pika has put together."""

    @abstractmethod
    def publish(self, batch: FrameBatch, first: int, last: int) -> int:
        """Write messages first..last-1; the first that found no room."""

    @abstractmethod
    def take(self, batch: FrameBatch) -> None:
        """Append what has come, as far as it fits."""

    @abstractmethod
    def serve(self) -> None:
        """Look at what has come: messages are set aside, confirms counted."""

    @property
    @abstractmethod
    def has_more(self) -> bool:
        """`take` has something to give without waiting."""

    @abstractmethod
    def acknowledge(self) -> None:
        """Settle everything taken."""

    @property
    @abstractmethod
    def confirmed(self) -> int:
        """So many publishes, the first ones, are settled by the broker."""

    @property
    @abstractmethod
    def refused(self) -> int:
        """Publishes that the broker did not take."""

    @property
    @abstractmethod
    def redelivered(self) -> int: ...
