"""A TCP connection under TLS, by Python's ssl. Reads and writes also do the handshake, step by step, and never block.

Compiled calls read and write descriptors, which TLS does not allow, so links under TLS are served in Python.
"""

from __future__ import annotations

import socket
import ssl

from transports.base import Address
from transports.keys import CONNECTOR, LISTENER, Keys
from transports.tcp.stream import TcpStream
from transports.waiting import READABLE

LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Tls:
    """Puts the connections of one end under TLS, by the address's keys. BadAddress if the keys cannot be used."""

    def __init__(self, address: Address, listens: bool) -> None:
        self._context = Keys.of(address).tls(LISTENER if listens else CONNECTOR)
        self._listens = listens
        self.later = LATER

    def wrap(self, sock: socket.socket) -> socket.socket:
        """The connection, before its handshake. OSError if it has ended."""
        return self._context.wrap_socket(sock, server_side=self._listens, do_handshake_on_connect=False)

    def stream(self, sock: socket.socket, nodelay: bool) -> TcpStream:
        return TlsStream(sock, nodelay)


class TlsStream(TcpStream):
    """A stream under TLS. `problem` has the reason if TLS ended the stream."""

    later = LATER
    is_compiled = False
    writes_compiled = False

    def __init__(self, sock: socket.socket, nodelay: bool) -> None:
        super().__init__(sock, nodelay)
        self._awaits_handshake = False

    def events(self, readable: bool, writable: bool) -> int:
        """The events to wait for. During the handshake a write waits for bytes of the peer, not for room."""
        if self._awaits_handshake:
            return READABLE
        return super().events(readable, writable)

    @property
    def has_unshown_bytes(self) -> bool:
        """Also true if ssl holds decrypted bytes that found no room, since whole frames filled the memory."""
        assert isinstance(self._socket, ssl.SSLSocket)
        return super().has_unshown_bytes or self._socket.pending() > 0

    def _read(self) -> int:
        """Read records while there is room: the descriptor does not show records that ssl has read already."""
        read_bytes = 0
        fresh_bytes = super()._read()
        while fresh_bytes > 0:
            read_bytes += fresh_bytes
            fresh_bytes = super()._read()
        if self._awaits_handshake:
            self.go_on()
        return read_bytes or fresh_bytes

    def _write(self, data: bytes) -> int:
        try:
            taken = super()._write(data)
        except ssl.SSLWantReadError:
            self._awaits_handshake = True
            raise
        self._awaits_handshake = False
        return taken

    def _note(self, error: OSError) -> None:
        """Note the first error of TLS itself; later ones follow from it. The end of the connection is none."""
        if self.problem or isinstance(error, ssl.SSLEOFError):
            return
        if isinstance(error, ssl.SSLError):
            self.problem = f" ({error.reason or error}): has it the same keys?"
