"""The bytes of a connection: a socket, what came and is not consumed, what was written and has not left.

pika writes here too, so that its frames and ours keep their order.
"""

from __future__ import annotations

import socket
import ssl

import numpy as np
import numpy.typing as npt
from pika.adapters.utils.nbio_interface import AbstractStreamProtocol, AbstractStreamTransport

Bytes = npt.NDArray[np.uint8]
INCOMING_BYTES = 1 << 21
OUTGOING_BYTES = 1 << 22
_LATER = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Stream(AbstractStreamTransport):
    """Never blocks. The connection's end is told to the protocol once."""

    def __init__(self, sock: socket.socket, protocol: AbstractStreamProtocol) -> None:
        self._socket, self._protocol = sock, protocol
        self.fd = sock.fileno()
        self.incoming: Bytes = np.zeros(INCOMING_BYTES, np.uint8)
        self.begin = self.end = 0
        """incoming[begin:end] has come and is not consumed."""
        self.outgoing: Bytes = np.zeros(OUTGOING_BYTES, np.uint8)
        self._first = self.last = 0
        """outgoing[_first:last] has not left."""
        self._is_open = True

    @property
    def unsent(self) -> int:
        """Bytes that were written and have not left."""
        return self.last - self._first

    @property
    def holds_back(self) -> bool:
        """TLS has more, of a record for which there was no room: the descriptor says nothing of it."""
        return self._is_open and isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def fill(self) -> int:
        """Take what has come, as far as there is room; how many bytes."""
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
        """Take bytes of pika's: they leave with the next flush."""
        if self.last + len(data) > len(self.outgoing):
            self._make_room(len(data))
        self.outgoing[self.last : self.last + len(data)] = np.frombuffer(data, np.uint8)
        self.last += len(data)

    def _make_room(self, size: int) -> None:
        """Move what is unsent to the front, of a longer buffer where that is not enough."""
        unsent = self.outgoing[self._first : self.last].copy()
        if len(unsent) + size > len(self.outgoing):
            self.outgoing = np.zeros(2 * (len(unsent) + size), np.uint8)
        self.outgoing[: len(unsent)] = unsent
        self._first, self.last = 0, len(unsent)

    def flush(self) -> bool:
        """Hand the socket what it takes; whether nothing is left."""
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
        if self._is_open:
            self._is_open = False
            self._socket.close()
            self._protocol.connection_lost(error)

    def abort(self) -> None:
        self.flush()
        self._lose(None)

    def close(self) -> None:
        """Let go of the socket; nobody is told any more."""
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
