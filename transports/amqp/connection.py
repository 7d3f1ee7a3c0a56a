"""A connection of pika's over a socket, buffers and timers of our own.

OwnConnection connects the socket, TLS included, in blocking calls with a time limit; then an AmqpStream owns it.
Timers run when the component's loop calls `run_due`. pika's methods for its adapters have private names, so its version
is pinned.
"""

from __future__ import annotations

import heapq
import itertools
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from pika import exceptions
from pika.connection import Connection, Parameters

from transports.base import Address
from transports.frames import LONGEST_FRAME, Bytes, Longs, untouched
from transports.sockets import connect_socket, set_nodelay

NEVER_NS = 2**62
INCOMING_BYTES = 1 << 21
OUTGOING_BYTES = 1 << 22

# Indexes of a stream's numbers. Index 0 has the notice of lent calls; those from OTHERS on are for compiled code.
BEGIN = 1
"""The begin of the bytes in `incoming` that came and are not consumed."""
END = 2
"""The end of those bytes."""
FIRST = 3
"""The begin of the bytes in `outgoing` that have not left."""
LAST = 4
"""The end of those bytes."""
OTHERS = 5
NUMBERS = 32
"""How many numbers a stream has."""
OTHER_BYTES = LONGEST_FRAME + (1 << 14)
"""Bytes of a stream's memory that are for compiled code."""
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
"""Errors that mean: there are no bytes, or there is no room, at the moment."""


class Callbacks(Protocol):
    """The receiver of the connection's events."""

    def on_open(self, connection: Connection) -> None: ...

    def on_open_error(self, connection: Connection, error: BaseException) -> None: ...

    def on_close(self, connection: Connection, reason: BaseException) -> None: ...


def _number(place: int) -> Any:
    """An attribute that is one of the stream's numbers, so that compiled code reads and writes it too."""

    def read(stream: AmqpStream) -> int:
        return stream._marks[place]

    def write(stream: AmqpStream, value: int) -> None:
        stream._marks[place] = value

    return property(read, write)


class AmqpStream:
    """A connected socket and its buffers; no call blocks. pika writes here too, so all frames keep their order.

    incoming[begin:end] has come and is not consumed; outgoing[_first:last] is written and has not left.
    """

    begin = _number(BEGIN)
    end = _number(END)
    _first = _number(FIRST)
    last = _number(LAST)

    def __init__(
        self, sock: socket.socket, receive: Callable[[bytes], None], lost: Callable[[Exception | None], None]
    ) -> None:
        """`receive` takes bytes for pika. `lost` is called once, at the connection's end, with the reason: an error, or
        None if this end closed.
        """
        self._socket = sock
        self._receive = receive
        self._lost = lost
        self.fd = sock.fileno()
        self.numbers: Longs = np.zeros(NUMBERS, np.int64)
        self._marks = memoryview(self.numbers.data)  # gives Python's own integers, which are faster
        self.memory: Bytes = untouched(INCOMING_BYTES + OUTGOING_BYTES + OTHER_BYTES)
        """The incoming bytes, the outgoing ones, and OTHER_BYTES for compiled code."""
        self.incoming = self.memory[:INCOMING_BYTES]
        self.outgoing = self.memory[INCOMING_BYTES : INCOMING_BYTES + OUTGOING_BYTES]
        self._is_open = True

    @property
    def is_lendable(self) -> bool:
        """True if compiled code can read and write the socket: there is no TLS, and no byte that has not left."""
        is_plain = self._is_open and not isinstance(self._socket, ssl.SSLSocket)
        has_own_outgoing = self.outgoing.base is self.memory  # else it was replaced by a longer buffer
        return is_plain and not self.unsent and has_own_outgoing

    @property
    def unsent(self) -> int:
        """Bytes that were written and have not left."""
        return self.last - self._first

    @property
    def has_decrypted(self) -> bool:
        """True if TLS has decrypted bytes: the descriptor does not report them as readable."""
        return self._is_open and isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def fill(self) -> int:
        """Read bytes into `incoming` as far as there is room; returns their number."""
        if self.begin == self.end:
            self.begin = 0
            self.end = 0
        elif self.end == len(self.incoming):
            unconsumed = self.incoming[self.begin : self.end].copy()
            self.incoming[: len(unconsumed)] = unconsumed
            self.begin = 0
            self.end = len(unconsumed)
        if not self._is_open or self.end == len(self.incoming):
            return 0
        try:
            came = self._socket.recv_into(self.incoming[self.end :].data)
        except _NOT_NOW:
            return 0
        except OSError as error:
            self._lose(exceptions.StreamLostError(repr(error)))
            return 0
        if came == 0:
            self._lose(exceptions.StreamLostError("end of file"))
        self.end += came
        return came

    def write(self, data: bytes) -> None:
        """Append bytes to `outgoing`; they leave with the next flush."""
        if self.last + len(data) > len(self.outgoing):
            self._make_room(len(data))
        self.outgoing[self.last : self.last + len(data)] = np.frombuffer(data, np.uint8)
        self.last += len(data)

    def _make_room(self, size: int) -> None:
        """Move the unsent bytes to the front of the buffer, or into a longer buffer if they need more room."""
        unsent = self.outgoing[self._first : self.last].copy()
        if len(unsent) + size > len(self.outgoing):
            self.outgoing = np.zeros(2 * (len(unsent) + size), np.uint8)
        self.outgoing[: len(unsent)] = unsent
        self._first = 0
        self.last = len(unsent)

    def flush(self) -> bool:
        """Give the socket as much as it takes. True if nothing is left."""
        while self._first < self.last and self._is_open:
            try:
                self._first += self._socket.send(self.outgoing[self._first : self.last].data)
            except _NOT_NOW:
                return False
            except OSError as error:
                self._lose(exceptions.StreamLostError(repr(error)))
        self._first = 0
        self.last = 0
        return True

    def _lose(self, error: Exception | None) -> None:
        """Close, and tell pika once that the connection has ended."""
        if self._is_open:
            self.close()
            self._lost(error)

    def abort(self) -> None:
        """Send the bytes that the socket takes at once, then end the connection."""
        self.flush()
        self._lose(None)

    def close(self) -> None:
        """Close the socket without telling pika."""
        if self._is_open:
            self._is_open = False
            self._socket.close()

    def hand_over(self, begin: int, end: int) -> None:
        """Give incoming[begin:end] to pika."""
        if self._is_open:
            self._receive(self.incoming[begin:end].tobytes())


class Timers:
    """Callbacks, each called once at its time, unless it is cancelled before."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int]] = []
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._numbers = itertools.count()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> int:
        """Returns a number by which the callback can be cancelled."""
        number = next(self._numbers)
        self._callbacks[number] = callback
        heapq.heappush(self._due, (time.monotonic_ns() + int(delay_s * 1e9), number))
        return number

    def cancel(self, number: object) -> None:
        self._callbacks.pop(number, None)

    @property
    def next_due_ns(self) -> int:
        return self._due[0][0] if self._due else NEVER_NS

    def run_due(self) -> None:
        """Call every callback that is due."""
        while self._due and self._due[0][0] <= time.monotonic_ns():
            _, number = heapq.heappop(self._due)
            callback = self._callbacks.pop(number, None)
            if callback is not None:
                callback()

    def clear(self) -> None:
        self._due.clear()
        self._callbacks.clear()


class OwnConnection(Connection):
    """pika's protocol over an AmqpStream and Timers; its methods `_adapter_...` are those of every pika adapter."""

    stream: AmqpStream

    def __init__(self, parameters: Parameters, callbacks: Callbacks, until_ns: int, buffers: Address | None) -> None:
        """Connect. `buffers`: the address whose options set the buffers of the socket. OSError if that fails."""
        self.timers = Timers()
        self._until_ns = until_ns
        self._buffers = buffers
        super().__init__(parameters, callbacks.on_open, callbacks.on_open_error, callbacks.on_close)

    def _adapter_connect_stream(self) -> None:
        self.stream = AmqpStream(self._connected(), self._on_data_available, self._on_stream_terminated)
        self._on_stream_connected()

    def _connected(self) -> socket.socket:
        """A new socket, connected, and under TLS if the parameters ask for it."""
        sock = connect_socket(self.params.host, self.params.port, self._left_s(), self._buffers)
        try:
            set_nodelay(sock.fileno(), True)
            tls = self.params.ssl_options
            if tls:
                sock.settimeout(self._left_s())
                sock = tls.context.wrap_socket(sock, server_hostname=tls.server_hostname)
        except OSError:
            sock.close()
            raise
        sock.setblocking(False)
        return sock

    def _left_s(self) -> float:
        return max((self._until_ns - time.monotonic_ns()) / 1e9, 0.1)

    def _adapter_disconnect_stream(self) -> None:
        self.stream.abort()

    def _adapter_emit_data(self, data: bytes) -> None:
        self.stream.write(data)

    def _adapter_call_later(self, delay: float, callback: Callable[[], None]) -> int:
        return self.timers.call_later(delay, callback)

    def _adapter_remove_timeout(self, timeout_id: object) -> None:
        self.timers.cancel(timeout_id)

    def _adapter_add_callback_threadsafe(self, callback: Callable[[], None]) -> None:
        """A plain timer is enough, since there is one thread."""
        self.timers.call_later(0, callback)
