"""A TCP link: who is let in, and the streams of those who were.

On the wire: the connector's preamble (PREAMBLE and the token), then frames, each behind its length as u32,
little-endian. The listener admits whoever shows the token; it closes and counts everyone else.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import replace
from typing import Any

from transports.base import Address, BadAddress, CannotListen, Link, PeerGone
from transports.frames import FrameBatch
from transports.sockets import read_back
from transports.tcp.door import Door
from transports.tcp.stream import Stream, warm
from transports.waiting import READABLE, WRITABLE, Sleeper

PREAMBLE = b"exchange"
RETRY_NS = 10_000_000


class TcpLink(Link):
    """One end: one stream, or (a listener that fans in) one for each peer."""

    def __init__(self, url: str, address: Address, door: Door | None = None) -> None:
        self.url = url
        self._fan_in, self._nodelay, self._quickack = address.fan_in, address.nodelay, _quickack(address)
        self._door = door
        self._streams: list[Stream] = []
        self._is_open = True
        warm()

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        for stream in self._streams:
            stream.receive(batch)
        if any(stream.ended for stream in self._streams):
            self._drop_ended(delivered=batch.count > before)
        return batch.count - before

    def _drop_ended(self, delivered: bool) -> None:
        """Forget streams that ended; PeerGone once nobody is left and everything was delivered."""
        alive = [stream for stream in self._streams if not stream.ended]
        if alive:
            for stream in self._streams:
                if stream.ended:
                    stream.close(0)
            self._streams = alive
        elif not delivered:
            raise PeerGone(f"the peer at {self.url} closed the connection")

    def send(self, batch: FrameBatch, first: int) -> int:
        if not self._streams:
            return first
        if self._fan_in:
            for stream in self._streams:
                stream.send_all(batch, first)
            return batch.count
        return self._streams[0].send(batch, first)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        events = (READABLE if readable else 0) | (WRITABLE if writable else 0)
        fds = [(stream.fd, events | (WRITABLE if stream.unsent else 0)) for stream in self._streams]
        newcomers = [(sock.fileno(), READABLE) for sock in self._door.sockets] if self._door else []
        woken = Sleeper(fds + newcomers).sleep(until_ns)
        for stream in self._streams:
            stream.go_on()
        if self._door and (woken or self._door.has_candidates):
            self._admit(self._door)

    def _admit(self, door: Door) -> None:
        """Let newcomers in; a conversation of two takes no third."""
        for newcomer in door.admit():
            if self._fan_in or not self._streams:
                self._streams.append(Stream(newcomer, self._nodelay, self._quickack))
            else:
                door.refuse(newcomer)

    def sockets(self) -> list[dict[str, Any]]:
        return read_back([stream.fd for stream in self._streams], self._nodelay)

    @property
    def refused(self) -> int:  # type: ignore[override]
        if self._door is None:
            return 0
        if self._is_open:
            self._admit(self._door)
        return self._door.refused

    def close(self, linger_s: float = 1.0) -> None:
        if not self._is_open:
            return
        self._is_open = False
        if self._door:
            self._admit(self._door)
            self._door.close()
        for stream in self._streams:
            stream.close(linger_s)
        self._streams = []

    def adopt(self, sock: socket.socket) -> TcpLink:
        """Make a connected socket this link's one stream."""
        self._streams.append(Stream(sock, self._nodelay, self._quickack))
        return self


def _quickack(address: Address) -> bool:
    chosen = address.options.get("quickack", "off")
    if chosen not in {"on", "off"}:
        raise BadAddress(f"{address.url}: quickack is {chosen!r}; it takes on or off")
    if chosen == "on" and not hasattr(socket, "TCP_QUICKACK"):
        raise BadAddress(f"{address.url}: this system has no TCP_QUICKACK; Linux has")
    return chosen == "on"


def listen(address: Address) -> Link:
    host, port = address.host_and_port()
    _quickack(address)
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise CannotListen(f"cannot listen on {address.url}: {error.strerror}; choose another port") from error
    listener.setblocking(False)
    place = f"{address.place.rpartition(':')[0]}:{listener.getsockname()[1]}"
    return TcpLink(replace(address, place=place).url, address, Door(listener, _preamble(address)))


def connect(address: Address, until_ns: int) -> Link:
    host, port = address.host_and_port()
    _quickack(address)
    while True:
        try:
            sock = socket.create_connection((host, port), timeout=max((until_ns - time.monotonic_ns()) / 1e9, 0.01))
            break
        except OSError as error:
            if time.monotonic_ns() >= until_ns:
                raise PeerGone(f"nobody listens on {address.url} ({error.strerror or error})") from error
            Sleeper([]).sleep(time.monotonic_ns() + RETRY_NS)
    sock.sendall(_preamble(address))
    return TcpLink(address.url, address).adopt(sock)


def _preamble(address: Address) -> bytes:
    token = address.token.encode()
    return PREAMBLE + struct.pack("<H", len(token)) + token
