"""A look at a run's queues from outside: one connection, one passive declare a queue, none of the broker's tools."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from transports.amqp.address import BrokerAddress
from transports.amqp.loops import OwnLoop
from transports.amqp.session import Session, parameters
from transports.amqp.topology import EXCHANGES, NAMES
from transports.base import Address, TransportError

PATIENCE_NS = 5_000_000_000


class Probe:
    """PeerGone or BadAddress where the broker cannot be reached, or does not let us in."""

    def __init__(self, url: str, run: str, further: Sequence[str] = ()) -> None:
        """`further` are names of queues beside NAMES."""
        broker = BrokerAddress.of(Address.parse(url, run))
        self._run, self._session, self._names = run, Session(broker), (*NAMES, *further)
        self._loop = OwnLoop(parameters(broker), self._session, self._until_ns())
        try:
            self._session.open(self._loop, self._until_ns())
        except TransportError:
            self._loop.release()
            raise

    @staticmethod
    def _until_ns() -> int:
        return time.monotonic_ns() + PATIENCE_NS

    @property
    def facts(self) -> dict[str, Any]:
        """What the broker says of itself: product, version, platform."""
        said = self._loop.connection.server_properties or {}
        return {name: said.get(name) for name in ("product", "version", "platform")}

    def depth(self) -> dict[str, int]:
        """Messages that lie in each of the run's queues; those that are there."""
        lengths = {name: self._length(f"{self._run}.{name}") for name in self._names}
        return {name: length for name, length in lengths.items() if length is not None}

    def _length(self, queue: str) -> int | None:
        declare, until_ns = self._session.channel.queue_declare, self._until_ns()
        try:
            (declared,) = self._session.ask(lambda done: declare(queue, passive=True, callback=done), until_ns)
        except TransportError:  # what is not there closes the channel
            self._session.renew_channel(until_ns)
            return None
        return int(declared.method.message_count)

    def take_down(self) -> None:
        """Delete what the run left at the broker, if anything."""
        until_ns = self._until_ns()
        with contextlib.suppress(TransportError):
            channel = self._session.channel
            for queue in [f"{self._run}.{name}" for name in self._names]:
                self._session.ask(partial(_delete, channel.queue_delete, queue), until_ns)
            for exchange in [self._run + name for name in EXCHANGES]:
                self._session.ask(partial(_delete, channel.exchange_delete, exchange), until_ns)

    def close(self) -> None:
        with contextlib.suppress(TransportError):
            self._session.close(self._until_ns())
        self._loop.release()


def _delete(delete: Callable[..., object], name: str, done: Callable[..., None]) -> None:
    """Of what is not there, too: RabbitMQ does not mind."""
    delete(name, callback=done)
