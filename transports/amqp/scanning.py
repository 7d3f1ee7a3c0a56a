"""A client's link that searches one queue of answers, shared by all clients, for its own.

AMQP 0-9-1 cannot ask a queue for certain messages, so the link takes message after message, one Basic.Get a round trip,
and looks at the correlation ids. The link holds other clients' answers without acknowledging them; once its own answer
comes, it returns the others to their places in the queue. At the end of the queue it returns all messages, and starts
again after a random pause: without the pause, two clients that hold each other's answers could take them back for ever.
A link does not see the messages that other links hold.
"""

from __future__ import annotations

import random
import time

from pika.spec import Basic

from transports.amqp import wire
from transports.amqp.compiled import CHANNEL, CompiledClient
from transports.amqp.layout import DIGITS, correlation_id
from transports.amqp.link import AmqpLink
from transports.base import Address, BadAddress
from transports.frames import FrameBatch

LONGEST_PAUSE_NS = 1_000_000
"""The longest random pause after the end of the queue."""


class ScanningLink(AmqpLink):
    """A client's link: it sends requests, and searches the shared queue for the answers to them."""

    def __init__(self, address: Address, until_ns: int) -> None:
        super().__init__(address, False, until_ns)
        if not isinstance(self._client, CompiledClient):
            self.close(0)
            raise BadAddress(f"{address.url}: a queue is scanned with client=compiled only")
        self._compiled_client = self._client
        self._id_prefix = self._side.asker
        """The digits with which the correlation ids of this client's requests begin."""
        self._awaited: set[int] = set()
        """The numbers of requests whose answers have not come."""
        self._requests_sent = 0
        self._empty_handled = 0
        """How often the queue was empty, as far as `receive` has handled that."""
        self._is_getting = False
        """Whether a Basic.Get is under way."""
        self._pause_end_ns = 0
        """No Basic.Get is sent before this time of the monotonic clock."""
        self._last_other_tag = 0
        """The delivery tag of the last held message of another client; 0 if none is held."""
        self.looked_at = 0
        """Messages taken out of the queue, our own and others'."""

    def _start_consuming(self, until_ns: int) -> None:
        """A scan has no consumer: `_get` asks for each message."""

    def _acknowledge(self, at_once: bool = False) -> None:
        """A scan settles each message by itself, whatever the delivery guarantee."""

    def send(self, batch: FrameBatch, first: int) -> int:
        end = super().send(batch, first)
        first_number = self._requests_sent + 1
        self._requests_sent += end - first
        self._awaited.update(range(first_number, self._requests_sent + 1))
        return end

    def receive(self, batch: FrameBatch) -> int:
        client = self._compiled_client
        before = batch.count
        arrived_before = client.taken + client.too_long
        super().receive(batch)
        if client.taken + client.too_long > arrived_before:
            self._take_or_hold(batch, before)
        elif client.scanner.empty > self._empty_handled:
            self._empty_handled = client.scanner.empty
            self._is_getting = False
            self._pause_end_ns = time.monotonic_ns() + random.randrange(LONGEST_PAUSE_NS)
            self._give_back()
        self._get()
        return batch.count - before

    def _take_or_hold(self, batch: FrameBatch, before: int) -> None:
        """Take the message that came if it is for this client, else hold it.

        The batch had `before` frames before the message came.
        """
        client = self._compiled_client
        tag = client.scanner.delivery_tag
        self._is_getting = False
        self.looked_at += 1
        is_in_batch = batch.count > before  # it is not if it is too long
        if is_in_batch and self._settle_request(client.returns.take()):
            client.stream.write(wire.method_frame(CHANNEL, Basic.Ack(tag)))
            self._give_back()
        else:
            batch.count = before
            self._last_other_tag = tag

    def _settle_request(self, properties: bytes) -> bool:
        """Stop awaiting the answer with these properties. False if this link does not await it."""
        request_id = correlation_id(properties)
        if not request_id.startswith(self._id_prefix):
            return False
        number = int(request_id[DIGITS:], 16)
        if number not in self._awaited:
            return False
        self._awaited.discard(number)
        return True

    def _give_back(self) -> None:
        """Return other clients' messages to the queue."""
        if self._last_other_tag:
            others = Basic.Nack(self._last_other_tag, multiple=True)  # each message returns to its place in the queue
            self._compiled_client.stream.write(wire.method_frame(CHANNEL, others))
            self._last_other_tag = 0

    def _get(self) -> None:
        """Ask for the next message, unless one is under way, no answer is awaited, or the pause is not over."""
        if self._awaited and not self._is_getting and time.monotonic_ns() >= self._pause_end_ns:
            self._compiled_client.stream.write(wire.method_frame(CHANNEL, Basic.Get(queue=self._queues[0])))
            self._is_getting = True
        self._loop.flush()

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        is_pausing = readable and self._awaited and not self._is_getting
        if is_pausing:
            until_ns = min(until_ns, self._pause_end_ns)
        super().wait(until_ns, readable, writable)

    def facts(self) -> dict[str, object]:
        return super().facts() | {"looked_at": self.looked_at}
