"""Links over a broker: each end consumes its own queues of the run and publishes to the other's.

A link is ready when it is made: its exchanges, queues and consumers are there.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from pika.channel import Channel

from transports.amqp.address import BrokerAddress
from transports.amqp.client import Client, OneByOneClient
from transports.amqp.compiled import CompiledClient
from transports.amqp.loops import OwnLoop, PikaLoop
from transports.amqp.session import BrokerSession
from transports.amqp.topology import LinkSide, check_kind, consume, declare, queue_length
from transports.base import Address, Link, PeerGone, TransportError
from transports.confirm_times import ConfirmTimes
from transports.frames import FrameBatch
from transports.lending import Lent
from transports.sockets import read_back, set_nodelay

CLIENTS: dict[str, tuple[type[Client], type[OwnLoop | PikaLoop]]] = {
    "compiled": (CompiledClient, OwnLoop),
    "pika": (OneByOneClient, PikaLoop),
}
"""The class that writes and reads the messages of each client, and the loop below it.

`pika` is a SelectConnection as its documentation shows it, with three writes a message. `compiled` has kernels for
messages, and a connection of pika's over a stream of ours for everything else, so a batch leaves in one write.
"""
MOST_UNSENT_BYTES = 1 << 20
ANY_NUMBER = 1 << 30
"""Stands for no limit of the messages that may be published."""
ACK_AFTER_NS = 10_000_000
"""Deliveries wait no longer than this for their acknowledgement, if the link is called by then."""


def warm(address: Address, listens: bool) -> None:
    """Compile the kernels of a link, or load them from disk, before a broker waits for us."""
    broker = BrokerAddress.of(address)
    client, _ = CLIENTS[broker.client]
    client.warm(LinkSide.of(address, listens).route(broker.delivery))


class _Commit(NamedTuple):
    """The number of deliveries that may be acknowledged: all messages sent because of them are confirmed."""

    taken: int = 0
    """Deliveries that may be acknowledged now."""
    next_taken: int = 0
    """Deliveries that may be acknowledged once `published` publishes are confirmed."""
    published: int = 0


class AmqpLink(Link):
    """A link of one connection, which consumes and publishes, unless another connection does one of the two."""

    def __init__(
        self, address: Address, listens: bool, until_ns: int, consumes: bool = True, publishes: bool = True
    ) -> None:
        self.url = address.url
        self._side = LinkSide.of(address, listens)
        self._consumes = consumes and bool(self._side.consumes)
        self._publishes = publishes and self._side.publishes_to is not None
        self._queues: list[str] = []
        broker = BrokerAddress.of(address)
        self._delivery = broker.delivery
        self._nodelay = address.nodelay
        self._heartbeat_s = broker.heartbeat_s
        client, loop_of = CLIENTS[broker.client]
        self._session = BrokerSession(broker, loop_of, until_ns, address)
        loop = self._session.loop
        self._loop = loop
        self._client = client(loop, self._side.route(self._delivery), self._delivery)
        self._acknowledged = 0
        self._acknowledged_ns = 0
        self._returned = 0
        self._confirm_times = ConfirmTimes()
        self._commit = _Commit()
        self._has_looked = False
        try:
            self._session.open(until_ns)
            set_nodelay(loop.descriptor, self._nodelay)  # connecting has set it
            check_kind(self._delivery.queue, loop.connection.server_properties or {}, broker)
            self._client.on_channel_open(self._session.channel)
            self._declare(until_ns)
        except TransportError:
            loop.release()
            raise

    def _declare(self, until_ns: int) -> None:
        """Make exchanges, queues and consumers, unless the other end has made them."""
        self._queues = declare(self._session, self._side, self._delivery, until_ns)
        if self._publishes and (self._delivery.confirms or self._side.publishes_to_topic):
            self._session.channel.add_on_return_callback(self._note_return)
        if self._publishes and self._delivery.confirms:
            confirm = self._session.channel.confirm_delivery
            self._session.ask(lambda done: confirm(self._client.note_confirm, callback=done), until_ns)
        if self._consumes:
            self._start_consuming(until_ns)

    def _start_consuming(self, until_ns: int) -> None:
        consumed = list(zip(self._queues, self._side.consumes, strict=False))
        consume(self._session, consumed, self._delivery, self._client.on_message, until_ns)

    def _note_return(self, *_: Any) -> None:
        """Count a message that came back because no queue took it."""
        self._returned += 1

    def _check(self) -> None:
        self._session.check()
        if self._returned and self._side.publishes_to_topic:
            key = self._side.route(self._delivery).key
            raise TransportError(f"{self.url}: no queue takes messages of the key {key!r}: no pattern matches it")

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        self._has_looked = True
        self._acknowledge()
        self._client.take(batch)
        self._confirm_times.confirmed(self._client.confirmed)
        self.junk = self._client.too_long
        if batch.count == before:
            self._check()
        return batch.count - before

    def _acknowledge(self, at_once: bool = False) -> None:
        """Acknowledge the messages of earlier calls of `receive`, once there are many or some time has passed."""
        if not self._delivery.acks:
            return
        taken = self._client.taken + self._client.too_long
        if self._side.keys and self._delivery.confirms and not at_once:
            taken = self._committed(taken)
        if taken == self._acknowledged:
            return
        now_ns = time.monotonic_ns()
        are_many = taken - self._acknowledged >= self._delivery.ack_batch
        are_old = now_ns - self._acknowledged_ns > ACK_AFTER_NS
        if at_once or are_many or are_old:
            self._client.acknowledge(taken)
            self._acknowledged = taken
            self._acknowledged_ns = now_ns

    def _committed(self, taken: int) -> int:
        """The number of deliveries for which the broker has confirmed all messages sent because of them."""
        if self._client.confirmed >= self._commit.published:
            self._commit = _Commit(self._commit.next_taken, taken, self._client.published)
        return self._commit.taken

    def send(self, batch: FrameBatch, first: int) -> int:
        if self.free_places <= 0:
            self._client.serve()  # confirms, or the end of a pause, may have come
            self._confirm_times.confirmed(self._client.confirmed)
            self._loop.flush()
            self._session.check()
        last = min(batch.count, first + self.free_places)
        if last > first:
            first = self._client.publish(batch, first, last)
            if self._delivery.confirms:
                self._confirm_times.sent(self._client.published)
            self._loop.flush()
        return first

    def lend(self) -> Lent | None:
        """The compiled calls; None if the link has one way only, acknowledges, waits for confirms, or is blocked."""
        has_both_ways = self._consumes and self._publishes
        is_lossy = not self._delivery.acks and not self._delivery.confirms
        if not has_both_ways or not is_lossy or self._session.blocked_since_ns:
            return None
        return self._client.lend(self._settle_lent)

    def _settle_lent(self) -> None:
        self._client.settle()
        self._check()

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self._check()
        if not (readable and self._has_looked):
            self._client.serve()  # read frames that are no messages: unread, they would end each sleep at once
            self._confirm_times.confirmed(self._client.confirmed)
        self._has_looked = False
        self._acknowledge()
        self._loop.flush()
        if (readable and self._client.has_more) or (writable and self.free_places > 0):
            return
        self._loop.sleep(until_ns)

    def watched(self) -> list[tuple[int, int]]:
        return self._loop.watched

    def serve(self) -> None:
        """Read the bytes that came and send those that were written, without waiting; the other connection waits."""
        self._client.serve()
        self._loop.flush()
        self._session.check()

    def wait_beside(self, other: AmqpLink) -> None:
        """Make `wait` also end when another link's connection has something to do."""
        self._loop.also_wake_for(other._loop)

    def wait_alone(self) -> None:
        """Undo `wait_beside`."""
        self._loop.wake_alone()

    @property
    def free_places(self) -> int:
        """The number of messages that may be published now."""
        if not self._publishes:
            raise TransportError(f"this end of {self.url} only receives")
        if self._session.blocked_since_ns or self._loop.unsent_bytes > MOST_UNSENT_BYTES:
            return 0
        if not self._delivery.confirms:
            return ANY_NUMBER
        unconfirmed = self._client.published - self._client.confirmed
        return self._delivery.confirm_window - unconfirmed

    def left(self, until_ns: int) -> int:
        """The number of messages in the queues that this end consumes."""
        consumed = self._queues[: len(self._side.consumes)]  # `declares` has them first
        return sum(queue_length(self._session, queue, until_ns) for queue in consumed)

    def sockets(self) -> list[dict[str, Any]]:
        return read_back([self._loop.descriptor], self._nodelay)

    def drain(self, until_ns: int) -> bool:
        """Wait until the broker has taken every message. Its confirms show that, or its answer to a last request."""
        channel = self._session.channel
        try:
            self._settle(until_ns)
            if not self._delivery.confirms:
                self._session.ask(lambda done: self._ask_anything(channel, done), until_ns)
        except PeerGone:
            return False
        return True

    def _ask_anything(self, channel: Channel, done: Callable[..., None]) -> None:
        """Send a request that always succeeds; its answer comes after everything before it was read."""
        if self._queues:
            queue = self._queues[0] if self._consumes else self._queues[-1]
            channel.queue_declare(queue, passive=True, callback=done)
        else:
            [exchange] = self._side.exchanges
            channel.exchange_declare(exchange.name, passive=True, callback=done)

    def facts(self) -> dict[str, Any]:
        """The broker's handling of this end's messages."""
        self._client.count_lent()
        return {
            "published": self._client.published,
            "confirmed": self._client.confirmed if self._delivery.confirms else None,
            "returned": self._returned,
            "refused": self._client.refused,
            "redelivered": self._client.redelivered,
            "blocked_s": self._session.blocked_s,
            **self._confirm_times.facts(),
            "knobs": self._knobs(),
        }

    def _knobs(self) -> dict[str, Any]:
        """The values of the address's options, without those that have no effect with this guarantee."""
        delivery = self._delivery
        knobs: dict[str, Any] = {"queue": delivery.queue}
        if delivery.acks:
            knobs["prefetch"] = delivery.prefetch
            knobs["ack_batch"] = delivery.ack_batch
        if delivery.confirms:
            knobs["confirm_window"] = delivery.confirm_window
        knobs["heartbeat_s"] = self._heartbeat_s
        return knobs

    def excuse(self) -> str:
        if not self._session.blocked_since_ns:
            return ""
        return ": the broker takes no messages, it is in alarm for want of memory or disk"

    def close(self, linger_s: float = 1.0) -> None:
        """Send all messages, wait for confirms, acknowledge received messages; then Close and CloseOk."""
        until_ns = time.monotonic_ns() + int(linger_s * 1e9)
        with contextlib.suppress(TransportError):
            self._session.check()
            self._settle(until_ns)
            self._acknowledge(at_once=True)
            if self._consumes:
                for queue in self._side.deletes:
                    self._delete(queue, until_ns)
        self._session.close(until_ns)

    def _delete(self, queue: str, until_ns: int) -> None:
        delete = self._session.channel.queue_delete
        self._session.ask(lambda done: delete(queue, callback=done), until_ns)

    def _settle(self, until_ns: int) -> None:
        """Wait until all messages are sent and confirmed. TransportError if the connection is lost before."""
        self._session.wait_for(self._is_settled, until_ns)
        self._session.check()  # a lost stream has nothing unsent, so it looks settled

    def _is_settled(self) -> bool:
        has_left = self._loop.unsent_bytes == 0
        is_confirmed = not self._delivery.confirms or self._client.confirmed >= self._client.published
        return has_left and is_confirmed


class TwoConnections(Link):
    """A simplex link: one connection publishes, the other consumes; sleeps are on the latter, and watch both."""

    def __init__(self, address: Address, listens: bool, until_ns: int) -> None:
        self.url = address.url
        self._inbound = AmqpLink(address, listens, until_ns, publishes=False)
        try:
            self._outbound = AmqpLink(address, listens, until_ns, consumes=False)
        except TransportError:
            self._inbound.close(0)
            raise
        self._inbound.wait_beside(self._outbound)

    def receive(self, batch: FrameBatch) -> int:
        frames = self._inbound.receive(batch)
        self.junk = self._inbound.junk
        return frames

    def send(self, batch: FrameBatch, first: int) -> int:
        return self._outbound.send(batch, first)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self._outbound.serve()
        if not (writable and self._outbound.free_places > 0):
            self._inbound.wait(until_ns, readable)

    def watched(self) -> list[tuple[int, int]]:
        return self._inbound.watched() + self._outbound.watched()

    def sockets(self) -> list[dict[str, Any]]:
        return self._inbound.sockets() + self._outbound.sockets()

    def drain(self, until_ns: int) -> bool:
        return self._outbound.drain(until_ns)

    def facts(self) -> dict[str, Any]:
        """The facts of the publishing connection, with the redeliveries on the other."""
        return {**self._outbound.facts(), "redelivered": self._inbound.facts()["redelivered"]}

    def excuse(self) -> str:
        return self._outbound.excuse()

    def close(self, linger_s: float = 1.0) -> None:
        """Close both connections, the publishing one first, so that all messages leave."""
        self._inbound.wait_alone()  # no sleep may watch a descriptor that is closed
        self._outbound.close(linger_s)
        self._inbound.close(linger_s)
