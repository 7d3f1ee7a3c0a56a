"""Frames that nats-py writes and reads, a message at a time: what its users measure, to compare our own kernels with.

nats-py runs in an event loop of the carrier's own, over a connection of its own. The words by which two ends meet go
over the link's connection, as with every carrier. So a frame may come after the word that its sender has left: the
mark, a PING that the server answers after all frames that it had for us, says when the last one has come.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import os
import selectors
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from transports.base import Address, BadAddress
from transports.frames import FrameBatch
from transports.nats.carriers import GROUP, CoreCarrier
from transports.nats.connection import ANSWER_S, PASSWORD, TOO_LONG, Connection, server_address
from transports.nats.protocol import FULL, OTHER
from transports.sockets import peer_of, set_nodelay
from transports.waiting import READABLE

TURNS = 3
"""Turns of the event loop from bytes that have come to our callback: nats-py's reader, its parser, its subscription."""
MOST_PENDING_BYTES = 1 << 20
"""Bytes that nats-py may have to send before we give it more; with twice as many its `publish` would wait."""
NO_LIMIT = 0
Result = TypeVar("Result")


class NatsPyCarrier(CoreCarrier):
    """Frames through nats-py; with `answers` it sends a frame for each request, to its asker, in their order."""

    lends = False

    def __init__(self, address: Address, connection: Connection, base: str, answers: bool = False) -> None:
        """BadAddress if the server refuses nats-py."""
        super().__init__(connection, base)
        self._selector = selectors.DefaultSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._messages: deque[Msg] = deque()
        """Messages that `take` has not given to a batch."""
        self._answers = answers
        self._askers: deque[str] = deque()
        """The subjects of the askers of requests without an answer, oldest first."""
        self._subject = ""
        self._reply_to = ""
        self._problem = ""
        """The first error that nats-py has reported."""
        self._has_unflushed = False
        """True if frames were published since the last PING that was to show that the server has them."""
        self._flushing: asyncio.Task[None] | None = None
        self._marking: asyncio.Task[None] | None = None
        self._client = Client()
        try:
            self._wait_for(self._connect(address))
        except (NatsError, OSError, TimeoutError) as error:
            self.close()
            raise BadAddress(f"nats-py cannot connect to the NATS server at {connection.place}: {error}") from error
        for descriptor in self.descriptors():
            set_nodelay(descriptor, address.nodelay)

    async def _connect(self, address: Address) -> None:
        server = server_address(address)
        host = f"[{server.host}]" if ":" in server.host else server.host
        password = os.environ.get(PASSWORD)
        await self._client.connect(
            f"nats://{host}:{server.port}",
            user=server.user or None,
            password=password if server.user else None,
            token=None if server.user else password,
            allow_reconnect=False,
            no_echo=True,
            connect_timeout=int(ANSWER_S),
            error_cb=self._note_error,
            closed_cb=self._note_end,
        )

    async def _note_error(self, error: Exception) -> None:
        self._problem = self._problem or str(error)

    async def _note_end(self) -> None:
        self._problem = self._problem or "it closed the connection"

    def _wait_for(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run the event loop until some work of nats-py is done, and return its result."""
        return self._loop.run_until_complete(work)

    def _turn(self) -> None:
        """Let the event loop take in what has come and send what can go. PeerGone if nats-py reports an error."""
        self._raise_if_broken()
        for _ in range(TURNS):
            self._loop.call_soon(self._loop.stop)
            self._loop.run_forever()
        self._raise_if_broken()

    def _raise_if_broken(self) -> None:
        if self._problem:
            raise self._connection.gone(self._problem)

    async def _keep(self, message: Msg) -> None:
        self._messages.append(message)

    def subscribe_with_others(self, subjects: Sequence[str]) -> None:
        for subject in subjects:
            self._subscribe(subject, "")

    def subscribe_in_group(self, subject: str) -> None:
        self._subscribe(subject, GROUP)

    def _subscribe(self, subject: str, group: str) -> None:
        """Subscribe, and return once the server has that. PeerGone if nats-py cannot."""
        subscribing = self._client.subscribe(
            subject, group, self._keep, pending_msgs_limit=NO_LIMIT, pending_bytes_limit=NO_LIMIT
        )
        try:
            self._wait_for(subscribing)
            self._wait_for(self._client.flush())
        except NatsError as error:
            raise self._connection.gone(str(error)) from error

    def publish_to(self, subject: str, reply_to: str = "") -> None:
        self._subject = subject
        self._reply_to = reply_to

    def take(self, batch: FrameBatch) -> int:
        if not self._messages:
            self._turn()
        while self._messages:
            frame = self._messages[0].data
            if len(frame) > batch.largest_frame:
                self._connection.numbers[TOO_LONG] += 1
            elif not batch.has_room(len(frame)):
                return FULL
            else:
                batch.append(frame)
                if self._answers:
                    self._askers.append(self._messages[0].reply)
            self._messages.popleft()
        return OTHER

    def send(self, batch: FrameBatch, first: int) -> int:
        self._raise_if_broken()
        try:
            taken = self._wait_for(self._publish(batch, first))
        except NatsError as error:
            raise self._connection.gone(str(error)) from error
        self._turn()
        return taken

    async def _publish(self, batch: FrameBatch, first: int) -> int:
        """Publish frames from `first` on while nats-py has room; returns the first one that was not published."""
        for index in range(first, batch.count):
            if not self.has_room:
                return index
            subject = self._askers.popleft() if self._answers else self._subject
            if subject:
                await self._client.publish(subject, batch[index], self._reply_to)
                self._has_unflushed = True
        return batch.count

    def ask_for_mark(self) -> None:
        self.mark_is_due = True
        self._marking = self._loop.create_task(self._flush())

    async def _flush(self) -> None:
        """Return once the server has answered a PING: then it has all that we sent, and we have all that it had."""
        try:
            await self._client.flush()
        except NatsError as error:
            await self._note_error(error)

    def serve(self) -> None:
        if self._messages:
            return
        self._turn()
        if self._marking is not None and self._marking.done():
            self._marking = None
            self.mark_is_due = False

    @property
    def holds_frames(self) -> bool:
        return bool(self._messages)

    @property
    def has_room(self) -> bool:
        return self._client.pending_data_size <= MOST_PENDING_BYTES

    def settle(self) -> bool:
        if self._has_unflushed:
            self._has_unflushed = False
            self._flushing = self._loop.create_task(self._flush())
        self._turn()
        return self._flushing is None or self._flushing.done()

    def events(self) -> list[tuple[int, int]]:
        return [(self._selector.fileno(), READABLE)]

    def descriptors(self) -> list[int]:
        """Return the socket of nats-py's connection: that TCP socket for which the event loop waits."""
        waited_for = [key.fd for key in self._selector.get_map().values()]
        return [descriptor for descriptor in waited_for if peer_of(descriptor) is not None]

    def facts(self) -> dict[str, Any]:
        return {"client": f"nats-py {importlib.metadata.version('nats-py')}"}

    def close(self) -> None:
        """Close nats-py's connection, and the event loop."""
        if self._loop.is_closed():
            return
        with contextlib.suppress(NatsError, OSError, TimeoutError):
            self._wait_for(self._client.close())
        self._loop.close()
        self._problem = "this end was closed"
