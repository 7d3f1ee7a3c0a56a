"""A ZeroMQ link on one or two sockets; transports/zeromq/endpoints.py makes the sockets."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zmq

from transports.base import Address, Link, Pattern, PeerGone
from transports.frames import FrameBatch
from transports.sockets import read_back
from transports.waiting import HAS_PPOLL, READABLE
from transports.zeromq.calls import FanInCalls, FirstCalls, PlainAnswerCalls, PlainCalls, PlainTopicCalls, Socket
from transports.zeromq.doorman import DOOR, SECOND_DOOR, Audience, Context, Credentials, Doorman

if TYPE_CHECKING:
    from transports.keys import Curve
    from transports.lending import Lent

HIGH_WATER_MARK = 100_000
"""Messages that a socket holds in memory each way. libzmq's default of 1,000 costs a fifth of the top speed."""

# As integers: an enum's & costs more than the call.
IN = int(zmq.POLLIN)
OUT = int(zmq.POLLOUT)


class ZeroMqLink(Link):
    """One end: a socket, or (simplex) one each way."""

    def __init__(
        self, address: Address, context: Context, inbound: Socket, outbound: Socket, credentials: Credentials
    ) -> None:
        self.url = address.url
        self._nodelay = address.nodelay
        self._context = context
        self._inbound = inbound
        self._outbound = outbound
        self.bound: dict[Socket, str] = {}
        """The endpoint on which each socket listens."""
        self._is_simplex = outbound is not inbound
        self._inbound_doorman = Doorman(context, inbound, address, credentials)
        if self._is_simplex:
            self._make_simplex(address)
        else:
            self._make_duplex(address)
        self._audience = Audience(outbound) if outbound.type == zmq.XPUB else None
        self._was_refused = False
        self._is_pair = address.pattern is Pattern.PAIR
        self._has_first_frame = True
        """False while FirstCalls receive, which find out the connection of the one peer."""
        self._lent: Lent | None = None
        self._receive = _receive_nothing if inbound.type == zmq.PUSH else self._calls.receive

    def _make_duplex(self, address: Address) -> None:
        """Set up the parts of a link with one socket, which receives and sends."""
        self._sockets = [self._inbound]
        self._doormen = [self._inbound_doorman]
        self._outbound_doorman = self._inbound_doorman
        self._calls = _calls(address, self._inbound, self._inbound_doorman.descriptors, self._inbound_doorman)
        self._out_calls = self._calls

    def _make_simplex(self, address: Address) -> None:
        """Set up the parts of a link with a socket each way. A sleep on the inbound socket watches the outbound one."""
        self._sockets = [self._inbound, self._outbound]
        self._outbound_doorman = Doorman(self._context, self._outbound, address, None)
        # A context has one ZAP handler, which the inbound doorman serves for both sockets.
        self._inbound_doorman.add_second_door(self._outbound_doorman)
        self._doormen = [self._inbound_doorman, self._outbound_doorman]
        watched = [
            int(self._outbound.get(zmq.FD)),
            *self._inbound_doorman.descriptors,
            *self._outbound_doorman.descriptors,
        ]
        self._calls = _calls(address, self._inbound, watched, self._inbound_doorman)
        self._out_calls = _calls(address, self._outbound, [], self._outbound_doorman)

    def bind(self, endpoints: list[str], curve: Curve | None) -> None:
        """Bind the sockets, inbound first, as servers that ask for the token, or for the connector's key."""
        doors = [DOOR, SECOND_DOOR] if self._is_simplex else [DOOR]
        for socket, endpoint, door in zip(self._sockets, endpoints, doors, strict=True):
            socket.zap_domain = door
            if curve is None:
                socket.plain_server = True
            else:
                socket.curve_server = True
                socket.curve_secretkey = curve.secret
            socket.bind(endpoint)
            self.bound[socket] = str(socket.getsockopt_string(zmq.LAST_ENDPOINT))

    def connect(self, endpoints: list[str], token: str, curve: Curve | None) -> None:
        """Connect the sockets, inbound first."""
        for socket, endpoint in zip(self._sockets, endpoints, strict=True):
            if curve is None:
                socket.plain_username = b"exchange"
                socket.plain_password = token.encode()
            else:
                socket.curve_publickey = curve.public
                socket.curve_secretkey = curve.secret
                socket.curve_serverkey = curve.theirs
            socket.connect(endpoint)

    def await_first_frame(self) -> None:
        """Use FirstCalls until the first frame shows which connection belongs to the peer."""

        def meet(descriptor: int) -> None:
            self._inbound_doorman.meet(descriptor)
            self._receive = self._calls.receive
            self._has_first_frame = True

        self._has_first_frame = False
        self._receive = FirstCalls(self._inbound, meet).receive

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        self.junk += self._receive(batch)
        return batch.count - before

    def send(self, batch: FrameBatch, first: int) -> int:
        taken = self._out_calls.send(batch, first)
        self._was_refused = taken < batch.count
        return taken

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        if self._is_simplex and writable and not self._is_full():
            return
        event_mask = IN if readable else 0
        if writable and not self._is_simplex:
            event_mask |= OUT
        if self._calls.sleep(event_mask, until_ns):
            self._serve()
        self._check_peer(event_mask)

    def watched(self) -> list[tuple[int, int]]:
        descriptors = [int(socket.get(zmq.FD)) for socket in self._sockets]
        for doorman in self._doormen:
            descriptors += doorman.descriptors
        return [(descriptor, READABLE) for descriptor in descriptors]

    def _check_peer(self, event_mask: int) -> None:
        """PeerGone if the peer has left, but only once every frame that it sent before its end has been read."""
        if self._peer_left and not self._calls.events() & event_mask:
            raise PeerGone(f"the peer at {self.url} closed the connection")

    def lend(self) -> Lent | None:
        """The compiled calls of a pair, once its first frame has come."""
        if self._lent is None and HAS_PPOLL and self._has_compiled_pair:
            from transports.zeromq.compiled import CompiledCalls

            assert isinstance(self._calls, CompiledCalls)
            assert isinstance(self._out_calls, CompiledCalls)
            self._lent = self._calls.lend(self._out_calls, self._settle)
        return self._lent

    @property
    def _has_compiled_pair(self) -> bool:
        """True if it is one end of a pair with compiled calls, and its first frame has come."""
        return self._is_pair and self._has_first_frame and type(self._calls) is not PlainCalls

    def _settle(self) -> None:
        """Do what lent calls left to Python; see Lent.settle."""
        from transports.zeromq.compiled import read_and_reset_notices

        assert self._lent is not None
        dropped, woken = read_and_reset_notices(self._lent)
        self.junk += dropped
        if woken:
            self._serve()
        self._check_peer(IN)

    def _is_full(self) -> bool:
        """True if nothing can be sent.

        An XPUB always reports room, so only a refused frame shows that it is full. The refusal counts for one wait;
        then `send` tries again.
        """
        if self._audience is None:
            return not self._out_calls.events() & OUT
        was_refused = self._was_refused
        self._was_refused = False
        return was_refused

    def _serve(self) -> None:
        for doorman in self._doormen:
            doorman.serve()
        if self._is_simplex:
            self._out_calls.events()  # unread events would keep its descriptor readable, and every sleep short
        if self._audience is not None:
            self._audience.serve()

    def await_peers(self, count: int, until_ns: int) -> None:
        """Return once `count` subscribers have made all their subscriptions, so that they will miss no frame.

        PeerGone if they do not come in time.
        """
        audience = self._audience
        while audience is not None and audience.count < count:
            if time.monotonic_ns() >= until_ns:
                raise PeerGone(f"{audience.count} of {count} subscribers came to {self.url} in time")
            self._calls.sleep(0, until_ns)
            self._serve()

    @property
    def _peer_left(self) -> bool:
        if self._audience is not None:  # replies of subscribers may come after their unsubscription
            return self._inbound_doorman.peer_left
        return self._inbound_doorman.peer_left or self._outbound_doorman.peer_left

    def sockets(self) -> list[dict[str, Any]]:
        self._serve()
        connections: list[int] = []
        for doorman in self._doormen:
            connections += doorman.connections
        return read_back(connections, self._nodelay)

    @property
    def refused(self) -> int:  # type: ignore[override]
        if not self._inbound.closed:
            self._serve()
        return sum(doorman.refused for doorman in self._doormen)

    def _unbind(self, socket: Socket, endpoint: str) -> None:
        """Free the endpoint now; libzmq's own thread would do it later."""
        with contextlib.suppress(zmq.ZMQError):
            socket.unbind(endpoint)
        if endpoint.startswith("ipc://"):
            Path(endpoint.removeprefix("ipc://")).unlink(missing_ok=True)

    def _drop_unread(self) -> None:
        """Drop unread frames: libzmq stops reading once its pipe is full, and a connection not read never ends."""
        with contextlib.suppress(zmq.ZMQError):
            for _ in range(2 * HIGH_WATER_MARK):
                self._inbound.recv(zmq.DONTWAIT)

    def close(self, linger_s: float = 1.0) -> None:
        if self._inbound.closed:
            return
        self._serve()
        for doorman in self._doormen:
            doorman.close()
        # Set linger before unbinding: libzmq applies the value of that moment.
        self._outbound.linger = int(linger_s * 1000)
        if self._is_simplex:
            self._inbound.linger = 0  # a SUB would wait to deliver its unsubscription to a peer that may be gone
        for socket, endpoint in self.bound.items():
            self._unbind(socket, endpoint)
        self._drop_unread()
        for socket in self._sockets:
            socket.close()
        if self._context is not zmq.Context.instance():
            self._context.term()


def _receive_nothing(_batch: FrameBatch) -> int:
    """The receive call of an end that only sends."""
    return 0


def _calls(address: Address, socket: Socket, watched: list[int], doorman: Doorman) -> PlainCalls:
    """The calls for a socket: compiled ones, unless the library lacks them or the address asks for plain ones."""
    if address.fan_in and socket.type == zmq.ROUTER:
        return FanInCalls(socket, watched, doorman.meet)
    prefix = _key_prefix(address) if socket.type in (zmq.XPUB, zmq.SUB) else b""
    answers = address.pattern is Pattern.REQUESTS and socket.type == zmq.ROUTER
    if address.options.get("calls") != "plain":
        try:
            return _compiled_calls(socket, watched, prefix, answers)
        except ImportError:
            pass  # the library hides its symbols: take plain calls
    if prefix:
        return PlainTopicCalls(socket, watched, prefix)
    if answers:
        return PlainAnswerCalls(socket, watched)
    return PlainCalls(socket, watched)


def _compiled_calls(socket: Socket, watched: list[int], prefix: bytes, answers: bool) -> PlainCalls:
    """Compiled calls for a socket. ImportError if the library hides its symbols."""
    from transports.zeromq.compiled import CompiledCalls

    if not prefix and not answers:
        return CompiledCalls(socket, watched)
    from transports.zeromq.compiled_patterns import answer_calls, topic_calls

    if prefix:
        return topic_calls(socket, watched, prefix)
    return answer_calls(socket, watched)


def _key_prefix(address: Address) -> bytes:
    """The bytes before each frame of a topic; empty for other patterns."""
    if address.pattern is not Pattern.TOPIC:
        return b""
    from transports.topics import key_prefix

    return key_prefix(address.keys[0])
