"""ZeroMQ, with no process in between: zeromq+tcp, zeromq+ipc, zeromq+inproc; plain zeromq is zeromq+tcp.

Two components share one PAIR-PAIR connection, which takes one peer, so that nobody else is ever dealt an
answer. A fan-in is a ROUTER with DEALERs. The listener is a PLAIN server whose password is the token: libzmq
turns away whoever cannot show it, and anything that is not ZMTP, before a message of his is read. inproc has
no handshake and needs none: it cannot be reached from outside the process.
`?calls=plain` uses pyzmq's own calls, one a message, instead of the compiled ones.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import zmq

from transports.base import Address, BadAddress, CannotListen, Link, PeerGone, Transport, TransportError
from transports.frames import FrameBatch
from transports.sockets import read_back
from transports.zeromq.calls import Calls, FanInCalls, FirstCalls, PlainCalls
from transports.zeromq.doorman import Doorman

HIGH_WATER_MARK = 100_000
"""Messages a socket holds in memory each way: 1,000, the default, costs a fifth of the speed flat out."""
IN, OUT = int(zmq.POLLIN), int(zmq.POLLOUT)  # an enum's & costs more than the call
RECONNECT_MS, HANDSHAKE_MS = 10, 300_000


class ZeroMqLink(Link):
    """One end."""

    def __init__(self, address: Address, socket: zmq.Socket[bytes], context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self.url = address.url
        self._socket, self._context = socket, context
        self.bound = ""  # the endpoint that it listens on
        self._doorman = Doorman(context, socket, address.token, address.nodelay)
        self._nodelay = address.nodelay
        self._calls = _calls(address, socket, self._doorman)
        self._receive = self._calls.receive

    def await_first_frame(self) -> None:
        """A listener of one peer: where its first frame comes from is his connection."""

        def meet(descriptor: int) -> None:
            self._doorman.meet(descriptor)
            self._receive = self._calls.receive

        self._receive = FirstCalls(self._socket, meet).receive

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        self.junk += self._receive(batch)
        return batch.count - before

    def send(self, batch: FrameBatch, first: int) -> int:
        return self._calls.send(batch, first)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        wanted = (IN if readable else 0) | (OUT if writable else 0)
        if self._calls.sleep(wanted, until_ns):
            self._doorman.serve()
        if self._doorman.peer_left and not self._calls.events() & wanted:  # asked last: what came before he left counts
            raise PeerGone(f"the peer at {self.url} closed the connection")

    def sockets(self) -> list[dict[str, Any]]:
        self._doorman.serve()
        return read_back(self._doorman.connections, self._nodelay)

    @property
    def refused(self) -> int:  # type: ignore[override]
        if not self._socket.closed:
            self._doorman.serve()
        return self._doorman.refused

    def _unbind(self, endpoint: str) -> None:
        """Give the place back now, not when libzmq's own thread gets to it."""
        with contextlib.suppress(zmq.ZMQError):
            self._socket.unbind(endpoint)
        if endpoint.startswith("ipc://"):
            Path(endpoint[6:]).unlink(missing_ok=True)

    def _throw_away_unread(self) -> None:
        """A full pipe of unread frames stops libzmq's reading, and a connection that is not read never ends."""
        with contextlib.suppress(zmq.ZMQError):
            for _ in range(2 * HIGH_WATER_MARK):
                self._socket.recv(zmq.DONTWAIT)

    def close(self, linger_s: float = 1.0) -> None:
        if self._socket.closed:
            return
        self._doorman.serve()
        self._doorman.close()
        if self.bound:
            self._unbind(self.bound)
        self._throw_away_unread()
        self._socket.close(linger=int(linger_s * 1000))
        if self._context is not zmq.Context.instance():
            self._context.term()


def _calls(address: Address, socket: zmq.Socket[bytes], doorman: Doorman) -> Calls:
    """The fastest calls there are, unless the address asks for others."""
    if address.options.get("calls", "compiled") not in {"compiled", "plain"}:
        raise BadAddress(f"{address.url}: calls takes compiled or plain")
    if address.fan_in and socket.type == zmq.ROUTER:
        return FanInCalls(socket, doorman.descriptors, doorman.meet)
    if address.options.get("calls") == "plain":
        return PlainCalls(socket, doorman.descriptors)
    with contextlib.suppress(ImportError):
        from transports.zeromq.compiled import CompiledCalls

        return CompiledCalls(socket, doorman.descriptors)
    return PlainCalls(socket, doorman.descriptors)


def _open(address: Address, kind: int) -> tuple[zmq.Socket[bytes], zmq.Context[zmq.Socket[bytes]]]:
    inproc = address.scheme == "zeromq+inproc"
    context = zmq.Context.instance() if inproc else zmq.Context()
    socket = context.socket(kind)
    socket.set_hwm(HIGH_WATER_MARK)
    socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
    socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
    socket.setsockopt(zmq.IPV6, address.place.startswith("["))
    return socket, context


def _endpoint(address: Address) -> str:
    """The address in libzmq's words."""
    kind = address.scheme.partition("+")[2] or "tcp"
    if kind == "tcp":
        address.host_and_port()
    if not address.place:
        raise BadAddress(f"{address.url!r} lacks a place behind {address.scheme}://")
    return f"{kind}://{address.place}"


def listen(address: Address) -> Link:
    endpoint = _endpoint(address)
    if endpoint.startswith("ipc://") and Path(endpoint[6:]).exists():
        raise CannotListen(f"cannot listen on {address.url}: {endpoint[6:]} exists; choose another path")
    socket, context = _open(address, zmq.ROUTER if address.fan_in else zmq.PAIR)
    link = ZeroMqLink(address, socket, context)
    socket.plain_server = True
    if not address.fan_in and address.scheme != "zeromq+inproc":
        link.await_first_frame()
    try:
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        link.close(0)
        raise CannotListen(f"cannot listen on {address.url}: {error.strerror}; choose another") from error
    link.bound = str(socket.getsockopt_string(zmq.LAST_ENDPOINT))
    if endpoint.startswith("tcp://"):
        place = f"{address.place.rpartition(':')[0]}:{link.bound.rpartition(':')[2]}"
        link.url = replace(address, place=place).url
    return link


def connect(address: Address, _until_ns: int) -> Link:
    """libzmq connects when it can: who waits for a hello notices a peer that never comes."""
    endpoint = _endpoint(address)
    socket, context = _open(address, zmq.DEALER if address.fan_in else zmq.PAIR)
    socket.plain_username, socket.plain_password = b"exchange", address.token.encode()
    link = ZeroMqLink(address, socket, context)
    try:
        socket.connect(endpoint)
    except zmq.ZMQError as error:
        link.close(0)
        raise TransportError(f"cannot connect to {address.url}: {error.strerror}") from error
    return link


TRANSPORT = Transport(
    places={"zeromq": "port", "zeromq+tcp": "port", "zeromq+ipc": "path", "zeromq+inproc": "name"},
    listen=listen,
    connect=connect,
    one_process=frozenset({"zeromq+inproc"}),
    variants=("", "calls=plain"),
    options=frozenset({"calls"}),
    over_tcp=frozenset({"zeromq", "zeromq+tcp"}),
)
