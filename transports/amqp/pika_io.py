"""pika's event loop interface (pika.adapters.utils.nbio_interface) over a socket and buffers of our own.

IoServices connects the socket, TLS included, in blocking calls with a time limit; then a Stream owns it. Timers run
when the component's loop calls `run_due`. pika declares this interface internal, so its version is pinned.
"""

from __future__ import annotations

import heapq
import itertools
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pika.adapters.utils.nbio_interface import (
    AbstractIOReference,
    AbstractIOServices,
    AbstractStreamProtocol,
    AbstractStreamTransport,
    AbstractTimerReference,
)

from transports.base import Address
from transports.frames import LONGEST_FRAME, Bytes, Longs, untouched
from transports.sockets import set_buffers

NEVER_NS = 2**62
INCOMING_BYTES = 1 << 21
OUTGOING_BYTES = 1 << 22
BEGIN, END, FIRST, LAST, OTHERS = range(1, 6)
"""Places in a stream's numbers: place 0 has the notice of lent calls, places from OTHERS on are for compiled code."""
NUMBERS, OTHER_BYTES = 32, LONGEST_FRAME + (1 << 14)
_LATER = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def _number(place: int) -> Any:
    """An attribute that is one of the stream's numbers, so that compiled code reads and writes it too."""

    def read(stream: Stream) -> int:
        return stream._marks[place]

    def write(stream: Stream, value: int) -> None:
        stream._marks[place] = value

    return property(read, write)


class Stream(AbstractStreamTransport):
    """A connected socket and its buffers; no call blocks. pika writes here too, so all frames keep their order.

    incoming[begin:end] has come and is not consumed; outgoing[_first:last] is written and has not left.
    """

    begin, end, _first, last = (_number(place) for place in (BEGIN, END, FIRST, LAST))

    def __init__(self, sock: socket.socket, protocol: AbstractStreamProtocol) -> None:
        self._socket, self._protocol = sock, protocol
        self.fd = sock.fileno()
        self.numbers: Longs = np.zeros(NUMBERS, np.int64)
        self._marks = memoryview(self.numbers.data)  # gives Python's own integers, which are faster
        self.memory: Bytes = untouched(INCOMING_BYTES + OUTGOING_BYTES + OTHER_BYTES)
        """The bytes that came, those to go, and room for others that compiled code needs."""
        self.incoming = self.memory[:INCOMING_BYTES]
        self.outgoing = self.memory[INCOMING_BYTES : INCOMING_BYTES + OUTGOING_BYTES]
        self._is_open = True

    @property
    def is_lendable(self) -> bool:
        """True if compiled code can read and write the socket: not through TLS, nor while bytes wait for it."""
        is_plain = self._is_open and not isinstance(self._socket, ssl.SSLSocket)
        return is_plain and not self.unsent and self.outgoing.base is self.memory

    @property
    def unsent(self) -> int:
        """Bytes that were written and have not left."""
        return self.last - self._first

    @property
    def holds_back(self) -> bool:
        """True if TLS has decrypted bytes that the descriptor does not report as readable."""
        return self._is_open and isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def fill(self) -> int:
        """Read what has come into `incoming`, as far as there is room; returns how many bytes."""
        if self.begin == self.end:
            self.begin = self.end = 0
        elif self.end == len(self.incoming):
            left = self.end - self.begin
            self.incoming[:left] = self.incoming[self.begin : self.end].copy()
            self.begin, self.end = 0, left
        if not self._is_open or self.end == len(self.incoming):
            return 0
        try:
            came = self._socket.recv_into(self.incoming[self.end :].data)
        except _LATER:
            return 0
        except OSError as error:
            self._lose(error)
            return 0
        if came == 0:
            self._protocol.eof_received()
            self._lose(None)
        self.end += came
        return came

    def write(self, data: bytes) -> None:
        """Append bytes to `outgoing`; they leave with the next flush."""
        if self.last + len(data) > len(self.outgoing):
            self._make_room(len(data))
        self.outgoing[self.last : self.last + len(data)] = np.frombuffer(data, np.uint8)
        self.last += len(data)

    def _make_room(self, size: int) -> None:
        """Move what is unsent to the front, of a longer buffer if that is not enough."""
        unsent = self.outgoing[self._first : self.last].copy()
        if len(unsent) + size > len(self.outgoing):
            self.outgoing = np.zeros(2 * (len(unsent) + size), np.uint8)
        self.outgoing[: len(unsent)] = unsent
        self._first, self.last = 0, len(unsent)

    def flush(self) -> bool:
        """Give the socket as much as it takes. True if nothing is left."""
        while self._first < self.last and self._is_open:
            try:
                self._first += self._socket.send(self.outgoing[self._first : self.last].data)
            except _LATER:
                return False
            except OSError as error:
                self._lose(error)
        self._first = self.last = 0
        return True

    def _lose(self, error: OSError | None) -> None:
        """Close, and tell pika once that the connection has ended."""
        if self._is_open:
            self._is_open = False
            self._socket.close()
            self._protocol.connection_lost(error)

    def abort(self) -> None:
        self.flush()
        self._lose(None)

    def close(self) -> None:
        """Close without a word to pika."""
        if self._is_open:
            self._is_open = False
            self._socket.close()

    def get_protocol(self) -> AbstractStreamProtocol:
        return self._protocol

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def hand_over(self, begin: int, end: int) -> None:
        """Give incoming[begin:end] to pika."""
        if self._is_open:
            self._protocol.data_received(self.incoming[begin:end].tobytes())


class _Timer(AbstractTimerReference, AbstractIOReference):
    """A callback that is called once, unless cancelled."""

    def __init__(self, callback: Callable[..., None]) -> None:
        self.callback: Callable[..., None] | None = callback

    def cancel(self) -> bool:
        was_due, self.callback = self.callback is not None, None
        return was_due


class IoServices(AbstractIOServices):
    """Timers, and one stream."""

    def __init__(self, until_ns: int, buffers: Address | None = None) -> None:
        self._until_ns, self._buffers = until_ns, buffers
        self._timers: list[tuple[int, int, _Timer]] = []
        self._numbers = itertools.count()
        self.stream: Stream | None = None

    def call_later(self, delay: float, callback: Callable[..., None]) -> _Timer:
        timer = _Timer(callback)
        due_ns = time.monotonic_ns() + int(delay * 1e9)
        heapq.heappush(self._timers, (due_ns, next(self._numbers), timer))
        return timer

    def add_callback_threadsafe(self, callback: Callable[..., None]) -> None:
        """A plain timer is enough, since there is one thread."""
        self.call_later(0, callback)

    @property
    def next_due_ns(self) -> int:
        return self._timers[0][0] if self._timers else NEVER_NS

    def run_due(self) -> None:
        """Call every callback that is due."""
        while self._timers and self._timers[0][0] <= time.monotonic_ns():
            _, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()

    def _answer(self, on_done: Callable[..., None], answer: object) -> _Timer:
        return self.call_later(0, lambda: on_done(answer))

    def getaddrinfo(
        self, host: str, port: int, on_done: Callable[..., None],
        family: int = 0, socktype: int = 0, proto: int = 0, flags: int = 0,
    ) -> _Timer:  # fmt: skip
        try:
            found: object = socket.getaddrinfo(host, port, family, socktype, proto, flags)
        except OSError as error:
            found = error
        return self._answer(on_done, found)

    def connect_socket(self, sock: socket.socket, resolved_addr: Any, on_done: Callable[..., None]) -> _Timer:
        error: OSError | None = None
        try:
            if self._buffers is not None:
                set_buffers(sock, self._buffers)
            sock.settimeout(self._left_s())
            sock.connect(resolved_addr)
        except OSError as refused:
            error = refused
        return self._answer(on_done, error)

    def create_streaming_connection(
        self, protocol_factory: Callable[[], Any], sock: socket.socket, on_done: Callable[..., None],
        ssl_context: ssl.SSLContext | None = None, server_hostname: str | None = None,
    ) -> _Timer:  # fmt: skip
        answer: object
        try:
            sock.settimeout(self._left_s())
            if ssl_context is not None:
                sock = ssl_context.wrap_socket(sock, server_hostname=server_hostname)
            sock.setblocking(False)
            protocol = protocol_factory()
            self.stream = Stream(sock, protocol)
            protocol.connection_made(self.stream)
            answer = self.stream, protocol
        except OSError as error:
            sock.close()
            answer = error
        return self._answer(on_done, answer)

    def _left_s(self) -> float:
        return max((self._until_ns - time.monotonic_ns()) / 1e9, 0.1)

    def get_native_ioloop(self) -> IoServices:
        return self

    def run(self) -> None:
        raise NotImplementedError("the component's own loop runs")

    def stop(self) -> None:
        raise NotImplementedError("the component's own loop runs")

    def close(self) -> None:
        self._timers.clear()
