"""A TCP link: who is let in, and the streams of those who were.

On the wire: the connector's preamble (PREAMBLE and the token), then frames, each behind its length as u32,
little-endian. The listener admits whoever shows the token; it closes and counts everyone else.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from typing import Any

from transports.base import Address, CannotListen, Link, PeerGone
from transports.frames import FrameBatch
from transports.sockets import read_back
from transports.tcp.stream import Stream
from transports.waiting import READABLE, WRITABLE, Sleeper

PREAMBLE = b"exchange"
RETRY_NS = 10_000_000


class TcpLink(Link):
    """One end: one stream, or (a listener that fans in) one for each peer."""

    def __init__(self, url: str, fan_in: bool, listener: socket.socket | None, expected: bytes = b"") -> None:
        self.url = url
        self._fan_in = fan_in
        self._listener = listener
        self._expected = expected
        self._candidates: dict[socket.socket, bytes] = {}
        self._streams: list[Stream] = []
        self._turned_away = 0

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        for stream in self._streams:
            stream.receive(batch)
        if any(stream.ended for stream in self._streams):
            self._drop_ended(silent=batch.count > before)
        return batch.count - before

    def _drop_ended(self, silent: bool) -> None:
        """Forget streams that ended; PeerGone once nobody is left and everything was delivered."""
        alive = [stream for stream in self._streams if not stream.ended]
        if alive:
            self._streams = alive
        elif not silent:
            raise PeerGone(f"the peer at {self.url} closed the connection")

    def send(self, batch: FrameBatch, first: int) -> int:
        if not self._streams:
            return first
        if self._fan_in:
            for stream in self._streams:
                stream.send_all(batch, first)
            return batch.count
        return self._streams[0].send(batch, first)

    def wait(self, until_ns: int, writable: bool = False) -> None:
        events = READABLE | WRITABLE if writable else READABLE
        fds = [(stream.fd, events) for stream in self._streams]
        newcomers = [(sock.fileno(), READABLE) for sock in self._waiting_room()]
        if Sleeper(fds + newcomers).sleep(until_ns) and newcomers:
            self._admit()

    def _waiting_room(self) -> list[socket.socket]:
        return [self._listener, *self._candidates] if self._listener else []

    def _admit(self) -> None:
        """Let newcomers in, or out."""
        if self._listener is None:
            return
        with contextlib.suppress(BlockingIOError):
            while True:
                newcomer, _ = self._listener.accept()
                newcomer.setblocking(False)
                self._candidates[newcomer] = b""
        for candidate in list(self._candidates):
            self._judge(candidate)

    def _judge(self, candidate: socket.socket) -> None:
        """Read a newcomer's preamble as far as it is there, and admit or refuse him."""
        shown = self._candidates[candidate]
        try:
            more = candidate.recv(len(self._expected) - len(shown))
        except BlockingIOError:
            return
        except OSError:
            more = b""
        shown += more
        self._candidates[candidate] = shown
        if not more or not self._expected.startswith(shown):
            self._refuse(candidate)
        elif shown == self._expected and (self._fan_in or not self._streams):
            del self._candidates[candidate]
            self._streams.append(Stream(candidate))
        elif shown == self._expected:
            self._refuse(candidate)

    def _refuse(self, candidate: socket.socket) -> None:
        self._turned_away += 1
        del self._candidates[candidate]
        candidate.close()

    def sockets(self) -> list[dict[str, Any]]:
        return read_back([stream.fd for stream in self._streams])

    @property
    def refused(self) -> int:  # type: ignore[override]
        self._admit()
        return self._turned_away + len(self._candidates)

    def close(self, linger_s: float = 1.0) -> None:
        self._admit()
        for candidate in list(self._candidates):
            self._refuse(candidate)
        if self._listener:
            self._listener.close()
        for stream in self._streams:
            stream.close(linger_s)
        self._listener, self._streams = None, []

    def adopt(self, sock: socket.socket) -> TcpLink:
        """Make a connected socket this link's one stream."""
        self._streams.append(Stream(sock))
        return self


def listen(address: Address) -> Link:
    host, port = address.host_and_port()
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise CannotListen(f"cannot listen on {address.url}: {error.strerror}; choose another port") from error
    listener.setblocking(False)
    url = f"tcp://{address.place.rpartition(':')[0]}:{listener.getsockname()[1]}"
    return TcpLink(url, address.fan_in, listener, _preamble(address))


def connect(address: Address, until_ns: int) -> Link:
    host, port = address.host_and_port()
    while True:
        try:
            sock = socket.create_connection((host, port), timeout=max((until_ns - time.monotonic_ns()) / 1e9, 0.01))
            break
        except OSError as error:
            if time.monotonic_ns() >= until_ns:
                raise PeerGone(f"nobody listens on {address.url} ({error.strerror or error})") from error
            Sleeper([]).sleep(time.monotonic_ns() + RETRY_NS)
    sock.sendall(_preamble(address))
    return TcpLink(address.url, address.fan_in, None).adopt(sock)


def _preamble(address: Address) -> bytes:
    token = address.token.encode()
    return PREAMBLE + struct.pack("<H", len(token)) + token
