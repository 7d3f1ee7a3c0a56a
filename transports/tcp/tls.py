"""A TCP connection under TLS, by Python's ssl: each read and write also moves the handshake on, so none of them blocks.

The compiled calls read and write descriptors, which TLS does not allow: links under TLS take their turns in Python.
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
    """Puts the connections of one end under the TLS of the address's keys. BadAddress if those cannot be used."""

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
    """A stream whose `problem` says why TLS ended it."""

    later = LATER
    is_compiled = writes_compiled = False

    def __init__(self, sock: socket.socket, nodelay: bool) -> None:
        super().__init__(sock, nodelay)
        self._awaits_handshake = False

    def events(self, readable: bool, writable: bool) -> int:
        """A write that waits for the peer's part of the handshake waits for no room."""
        return READABLE if self._awaits_handshake else super().events(readable, writable)

    def _read(self) -> int:
        """Read all records that are there, so that none is left where no descriptor shows it."""
        before = self._used
        fresh = -1
        while self._used < len(self._inbound) and (fresh := super()._read()) > 0:
            pass
        if self._awaits_handshake:
            self.go_on()
        return self._used - before or fresh

    def _write(self, data: bytes) -> int:
        try:
            taken = super()._write(data)
        except ssl.SSLWantReadError:
            self._awaits_handshake = True
            raise
        self._awaits_handshake = False
        return taken

    def _note(self, error: OSError) -> None:
        """TLS itself failed, if the connection did not just end. What fails after that says less."""
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            self.problem = self.problem or f" ({error.reason or error}): has it the same keys?"
