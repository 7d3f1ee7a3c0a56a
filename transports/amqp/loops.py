"""Two loops that drive pika's connection: our own, and pika's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import pika
from pika import exceptions
from pika.adapters.select_connection import IOLoop
from pika.connection import Connection, Parameters

from transports.amqp.connection import AmqpStream, Callbacks, OwnConnection
from transports.base import Address
from transports.waiting import READABLE, WRITABLE, Sleeper

PIECE_BYTES = 4_096
"""The most bytes that pika gets at once."""
UNSENT_NS = 1_000_000
"""The longest sleep while another connection has unsent bytes."""


class Loop(Protocol):
    """A loop that drives pika's connection; it gives the connection's events to a receiver, Callbacks."""

    connection: Connection

    def sleep(self, until_ns: int) -> None:
        """Sleep until bytes have come, unsent bytes can go, or a time of the monotonic clock; pika's timers run.

        Flush first, then look whether there is anything to wait for, then sleep. A sleep never sends and then sleeps
        on: that could make the room for which its caller waits, and the caller would not wake.
        """

    def also_wake_for(self, other: Any) -> None:
        """Make each sleep also end when another loop, of the same class, has something to do."""

    def wake_alone(self) -> None:
        """Forget the other loop, before its connection is closed."""

    def serve(self) -> None:
        """Handle everything that has come."""

    def flush(self) -> bool:
        """Send the written bytes. True if all of them have left."""

    @property
    def unsent_bytes(self) -> int: ...

    @property
    def descriptor(self) -> int: ...

    @property
    def watched(self) -> list[tuple[int, int]]:
        """What to poll for, as Link.watched has it; empty if this loop only sleeps by itself."""

    def release(self) -> None: ...


class OwnLoop(Loop):
    """One thread, one socket, one buffer each way. It sleeps with the resolution of the clock."""

    def __init__(self, parameters: Parameters, callbacks: Callbacks, until_ns: int, buffers: Address | None) -> None:
        self.connection = OwnConnection(parameters, callbacks, until_ns, buffers)
        self.stream = self.connection.stream
        self.timers = self.connection.timers
        self._sleepers: dict[tuple[bool, ...], Sleeper] = {}
        """The sleepers made so far, by whether each stream has unsent bytes."""
        self._other: OwnLoop | None = None
        self.consume: Callable[[AmqpStream], None] = _give_pika_everything
        """Called after bytes have come; a client may replace it."""

    @property
    def unsent_bytes(self) -> int:
        return self.stream.unsent

    @property
    def descriptor(self) -> int:
        return self.stream.fd

    @property
    def watched(self) -> list[tuple[int, int]]:
        return [(self.stream.fd, READABLE | WRITABLE if self.stream.unsent else READABLE)]

    def also_wake_for(self, other: OwnLoop) -> None:
        self._other = other
        self._sleepers.clear()  # earlier sleepers know one socket only

    def wake_alone(self) -> None:
        self._other = None
        self._sleepers.clear()

    @property
    def _loops(self) -> list[OwnLoop]:
        """This loop, and the other loop for which it also wakes, if there is one."""
        return [self] if self._other is None else [self, self._other]

    def sleep(self, until_ns: int) -> None:
        have_unsent = [loop.unsent_bytes > 0 for loop in self._loops]
        streams = [loop.stream for loop in self._loops]
        wake_ns = min(until_ns, *(loop.timers.next_due_ns for loop in self._loops))
        if not any(stream.has_decrypted for stream in streams):
            self._sleeper(streams, have_unsent).sleep(wake_ns)
        for loop in self._loops:
            loop.timers.run_due()

    def _sleeper(self, streams: list[AmqpStream], have_unsent: list[bool]) -> Sleeper:
        """The sleeper for these streams, which also waits for room on those that have unsent bytes."""
        case = tuple(have_unsent)
        if case not in self._sleepers:
            watched = []
            for stream, has_unsent in zip(streams, have_unsent, strict=True):
                events = READABLE | WRITABLE if has_unsent else READABLE
                watched.append((stream.fd, events))
            self._sleepers[case] = Sleeper(watched)
        return self._sleepers[case]

    def serve(self) -> None:
        self.stream.fill()
        if self.stream.begin < self.stream.end:  # also what came earlier, behind messages that found no room
            self.consume(self.stream)

    def flush(self) -> bool:
        return self.stream.flush()

    def release(self) -> None:
        self.timers.clear()
        self.stream.close()


def _give_pika_everything(stream: AmqpStream) -> None:
    """Give pika the bytes in pieces. After each frame pika copies the rest: with all bytes at once that would take
    quadratic time.
    """
    begin = stream.begin
    stream.begin = stream.end
    for at in range(begin, stream.end, PIECE_BYTES):
        stream.hand_over(at, min(at + PIECE_BYTES, stream.end))


class _RecordingLoop(IOLoop):
    """pika's own loop, which also records the connection's descriptor; -1 before there is one."""

    descriptor = -1

    def add_handler(self, fd: int, handler: Callable[[int, int], None], events: int) -> None:
        self.descriptor = fd
        super().add_handler(fd, handler, events)


class PikaLoop(Loop):
    """pika.SelectConnection on its own IOLoop, one turn at a time; pika writes each frame by itself.

    This uses two private names of pika, `_transport` and `_terminate_stream`: there is no public way to see the unsent
    bytes of a connection or to end it at once.
    """

    def __init__(self, parameters: Parameters, callbacks: Callbacks, _until_ns: int, _buffers: Address | None) -> None:
        self._ioloop = _RecordingLoop()
        self._other: PikaLoop | None = None
        self._ioloop.activate_poller()
        self.connection = pika.SelectConnection(
            parameters, callbacks.on_open, callbacks.on_open_error, callbacks.on_close, custom_ioloop=self._ioloop
        )

    @property
    def unsent_bytes(self) -> int:
        transport = self.connection._transport
        return transport.get_write_buffer_size() if transport else 0

    @property
    def descriptor(self) -> int:
        return self._ioloop.descriptor

    @property
    def watched(self) -> list[tuple[int, int]]:
        return []

    def also_wake_for(self, other: PikaLoop) -> None:
        """End each sleep also when bytes come on another connection; sleep briefly while that connection must send."""
        self._other = other
        IOLoop.add_handler(self._ioloop, other.descriptor, lambda *_: None, IOLoop.READ)

    def wake_alone(self) -> None:
        if self._other is not None:
            self._ioloop.remove_handler(self._other.descriptor)
            self._other = None

    def sleep(self, until_ns: int) -> None:
        if self._other and self._other.unsent_bytes:
            until_ns = min(until_ns, time.monotonic_ns() + UNSENT_NS)
        self._turn(max(until_ns - time.monotonic_ns(), 0) / 1e9)

    def serve(self) -> None:
        self._turn(0)

    def _turn(self, longest_s: float) -> None:
        alarm = self._ioloop.call_later(longest_s, lambda: None)
        self._ioloop.poll()
        self._ioloop.process_timeouts()
        self._ioloop.remove_timeout(alarm)

    def flush(self) -> bool:
        """Turn the loop if bytes are unsent: pika writes when its loop turns, not at basic_publish."""
        if self.unsent_bytes:
            self._turn(0)
        return self.unsent_bytes == 0

    def release(self) -> None:
        if not self.connection.is_closed:
            self.connection._terminate_stream(exceptions.StreamLostError("released"))
            self._turn(0)
        self._ioloop.close()
