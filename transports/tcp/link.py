"""A TCP link: the peers that a listener admits, and a stream for each connection.

On the wire: the connector's preamble (the connection's direction, and the token), then frames, each behind its length
as u32, little-endian. The listener admits peers with the token; it closes and counts all others.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from transports.base import Address, BadAddress, CannotListen, Link, PeerGone
from transports.frames import FrameBatch
from transports.lending import NOTICE, Lent
from transports.sockets import connect_socket, read_back, set_buffers
from transports.tcp.door import Door
from transports.tcp.stream import OverlongFrame, TcpStream, lent_calls, warm
from transports.waiting import READABLE, Sleeper

if TYPE_CHECKING:
    from transports.tcp.tls import Tls

# The beginnings of a preamble: the direction of the frames on its connection.
BOTH_WAYS = b"exchange"
TO_LISTENER = b"exchang>"
TO_CONNECTOR = b"exchang<"
RETRY_NS = 10_000_000
LEAST_ATTEMPT_S = 0.01
"""The time that an attempt to connect gets at least, even if the time for all attempts has run out."""
BACKLOG = 4096
"""Connections that the kernel holds until the listener accepts them; further attempts are lost for a second or more."""


class TcpLink(Link):
    """One end. It has one stream; simplex: a stream each way; a fan-in's listener: a stream for each peer."""

    def __init__(self, url: str, address: Address, door: Door | None = None, tls: Tls | None = None) -> None:
        self.url = url
        self._tls = tls
        self._fan_in = address.fan_in
        self._nodelay = address.nodelay
        self._quickack = _quickack(address)
        self._door = door
        self._streams: list[TcpStream] = []
        self._outbound: TcpStream | None = None
        """The stream on which this end sends, one of `_streams`; None for a fan-in, which sends on all of them."""
        self._is_open = True
        warm()

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        for stream in list(self._streams):
            try:
                stream.receive(batch)
            except OverlongFrame:
                if not self._fan_in:
                    raise
                self._throw_out(stream)
        if any(stream.ended for stream in self._streams):
            self._drop_ended(delivered=batch.count > before)
        return batch.count - before

    def _throw_out(self, stream: TcpStream) -> None:
        """Close the connection of a peer that sent an overlong frame, and count the frame. The other peers stay."""
        self.junk += 1
        self._streams.remove(stream)
        stream.close(0)

    def _drop_ended(self, delivered: bool) -> None:
        """Forget streams that ended. PeerGone once none is left and everything was delivered."""
        alive = [stream for stream in self._streams if not stream.ended]
        if alive and self._fan_in:
            for stream in self._streams:
                if stream.ended:
                    stream.close(0)
            self._streams = alive
        elif not delivered:
            why = next((stream.problem for stream in self._streams if stream.problem), "")
            raise PeerGone(f"the peer at {self.url} closed the connection{why}")

    def send(self, batch: FrameBatch, first: int) -> int:
        if self._fan_in and self._streams:
            for stream in self._streams:
                # The other peers get the frames even if one stream broke; `receive` drops that one.
                with contextlib.suppress(PeerGone):
                    stream.send_all(batch, first)
            return batch.count
        if self._outbound is None:
            return first
        return self._outbound.send(batch, first)

    def lend(self) -> Lent | None:
        """The compiled calls of a pair, once both ways are connected."""
        if self._outbound is None or self._fan_in or len(self._streams) > 2:
            return None
        newcomers = [sock.fileno() for sock in self._door.sockets] if self._door else []
        return lent_calls(self._inbound or self._outbound, self._outbound, newcomers, self._settle)

    @property
    def _inbound(self) -> TcpStream | None:
        """The stream on which this end only receives; None before it is there, and on a duplex link."""
        for stream in self._streams:
            if stream is not self._outbound:
                return stream
        return None

    def _settle(self) -> None:
        """Do what lent calls left to Python; see Lent.settle. The next `receive` raises PeerGone if that is due."""
        for stream in self._streams:
            stream.numbers[NOTICE] = 0
        if self._door:
            self._admit(self._door)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        if readable and any(stream.has_unshown_bytes for stream in self._streams):
            until_ns = 0  # do not sleep: no descriptor becomes ready for what has been read already
        woken = Sleeper(self._descriptors(readable, writable)).sleep(until_ns)
        for stream in self._streams:
            stream.go_on()
        if self._door and (woken or self._door.candidates):
            self._admit(self._door)

    def watched(self) -> list[tuple[int, int]]:
        return self._descriptors(readable=True, writable=False)

    def _descriptors(self, readable: bool, writable: bool) -> list[tuple[int, int]]:
        """The descriptors of streams and newcomers, each with the events to wait for."""
        fds = [(stream.fd, self._events(stream, readable, writable)) for stream in self._streams]
        newcomers = [(sock.fileno(), READABLE) for sock in self._door.sockets] if self._door else []
        return fds + newcomers

    def _events(self, stream: TcpStream, readable: bool, writable: bool) -> int:
        """The events to wait for; a stream on which this end does not send always has room."""
        return stream.events(readable, writable and (self._fan_in or stream is self._outbound))

    def _admit(self, door: Door) -> None:
        """Let newcomers in. Only a fan-in takes more than one peer."""
        for newcomer, shown in door.admit():
            is_to_listener = shown.startswith(TO_LISTENER)
            occupant = self._inbound if is_to_listener else self._outbound
            if occupant is not None and not self._fan_in:
                door.refuse(newcomer)
            else:
                self.adopt(newcomer, sends=not is_to_listener)

    def drain(self, until_ns: int) -> bool:
        try:
            return all(stream.drain(until_ns) for stream in self._streams)
        except PeerGone:
            return False

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
        self._outbound = None

    def adopt(self, sock: socket.socket, sends: bool, preamble: bytes = b"") -> None:
        """Make a connected socket one of this link's streams; `sends`: this end sends on it."""
        if self._tls is None:
            stream = TcpStream(sock, self._nodelay, self._quickack)
        else:
            stream = self._tls.stream(sock, self._nodelay)
        self._streams.append(stream)
        if sends and not self._fan_in:
            self._outbound = stream
        stream.send_first(preamble)


def _quickack(address: Address) -> bool:
    """True if the address asks for TCP_QUICKACK. BadAddress if this system lacks it."""
    is_on = address.options.get("quickack", "off") == "on"
    if is_on and not hasattr(socket, "TCP_QUICKACK"):
        raise BadAddress(f"{address.url}: this system has no TCP_QUICKACK; Linux has")
    return is_on


def _tls(address: Address, listens: bool) -> Tls | None:
    """The TLS of this end; None if the address names no keys. BadAddress if they cannot be used."""
    if "keys" not in address.options:
        return None
    from transports.tcp.tls import Tls

    return Tls(address, listens)


def listen(address: Address) -> Link:
    """Open a listener's link. CannotListen if the address cannot be had."""
    host, port = address.host_and_port()
    _quickack(address)
    tls = _tls(address, listens=True)
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    set_buffers(listener, address)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotListen(f"cannot listen on {address.url}: {error.strerror}; choose another address") from error
    listener.setblocking(False)
    place = f"{address.place.rpartition(':')[0]}:{listener.getsockname()[1]}"
    preambles = [_preamble(address, way) for way in _ways(address)]
    door = Door(listener, *preambles, tls=tls)
    return TcpLink(replace(address, place=place).url, address, door, tls=tls)


def connect(address: Address, until_ns: int) -> Link:
    """Open a connector's link. PeerGone if no listener is there in time."""
    tls = _tls(address, listens=False)
    link = TcpLink(address.url, address, tls=tls)
    try:
        for way in _ways(address):
            link.adopt(_connected(address, tls, until_ns), way != TO_CONNECTOR, _preamble(address, way))
    except BaseException:
        link.close(0)
        raise
    return link


def _connected(address: Address, tls: Tls | None, until_ns: int) -> socket.socket:
    """Try to connect until there is a listener. PeerGone if there is none in time."""
    host, port = address.host_and_port()
    while True:
        left_s = (until_ns - time.monotonic_ns()) / 1e9
        try:
            sock = connect_socket(host, port, max(left_s, LEAST_ATTEMPT_S), address)
            return tls.wrap(sock) if tls else sock
        except OSError as error:
            if time.monotonic_ns() >= until_ns:
                raise PeerGone(f"nobody listens on {address.url} ({error.strerror or error})") from error
            Sleeper([]).sleep(time.monotonic_ns() + RETRY_NS)


def _ways(address: Address) -> tuple[bytes, ...]:
    """The directions of the link's connections, in the order in which a connector makes them."""
    if address.simplex:
        return (TO_LISTENER, TO_CONNECTOR)
    return (BOTH_WAYS,)


def _preamble(address: Address, way: bytes) -> bytes:
    """The first bytes on a connection: its direction, the length of the token as u16, little-endian, the token."""
    token = address.token.encode()
    return way + struct.pack("<H", len(token)) + token
