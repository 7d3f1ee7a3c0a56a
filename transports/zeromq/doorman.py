"""The peers of a socket: which are admitted, refused or gone, and how many have subscribed.

Doorman uses ZeroMQ's authentication (ZAP, RFC 27) and its socket monitor, which also gives each connection's
descriptor, for TCP_NODELAY. The link's own loop serves both; there is no further thread. Neither tells which connection
a handshake was on, so a listener knows its peers' connections by the frames that come through them: see `meet`.

libzmq does not limit the number of connections. So a doorman ends the oldest connection without a frame, once there
are too many.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

import zmq
from zmq.utils import z85

from transports.base import BASIC_PATTERNS, Address, Pattern
from transports.sockets import end_connection, peer_of, set_nodelay
from transports.zeromq.calls import Socket

if TYPE_CHECKING:
    from transports.keys import Curve

Context = zmq.Context[Socket]


DOOR = b"in"
"""The ZAP domain of a listener's first socket."""
SECOND_DOOR = b"out"
"""The ZAP domain of a listener's second socket, by which it sends."""
ZAP_ENDPOINT = "inproc://zeromq.zap.01"
JOINED = b"\0joined"
"""The last subscription of every subscriber: it shows that the publisher has the earlier ones."""
SUBSCRIBED = b"\1"
MOST_STRANGERS = 64
"""The most open connections of a listener through which no frame came."""
MONITORED = struct.Struct("=hi")
"""The first frame of a monitor's message: event and descriptor. zmq.utils.monitor would load asyncio to read it."""
WATCHED = zmq.EVENT_ACCEPTED | zmq.EVENT_CONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED


Credentials = tuple[bytes, tuple[bytes, ...]]
"""ZAP's name of the mechanism, and the peer's credentials: user and password, or its public key."""


def credentials_of(token: str, curve: Curve | None) -> Credentials:
    """The credentials that a listener's peers have to show: the token, or with keys the connector's public key."""
    if curve is None:
        return (b"PLAIN", (b"exchange", token.encode()))
    return (b"CURVE", (z85.decode(curve.theirs),))


class Doorman:
    """Admits peers to one socket, and follows its connections.

    `refused` counts accepted connections that never completed the handshake.
    """

    def __init__(self, context: Context, socket: Socket, address: Address, credentials: Credentials | None) -> None:
        """`credentials`: those that peers have to show; None if another doorman of the context checks them for both."""
        self._has_many_peers = address.pattern not in BASIC_PATTERNS
        """True for several peers, whose connections cannot be distinguished."""
        self._credentials = credentials
        self._nodelay = address.nodelay
        self._accepted = 0
        """How many connections were accepted."""
        self._admitted = 0
        """How many handshakes succeeded."""
        self._met = 0
        """How many connections were noted as peers'."""
        self._takes_one = address.pattern is Pattern.PAIR
        """True if a second peer is refused."""
        self.doors = {DOOR: self}
        """The doormen of the context by the ZAP domain of their sockets."""
        self._open: dict[int, str | None] = {}
        """The peer's address of each open connection, oldest first."""
        self._may_be_admitted: set[int] = set()
        """Open connections that may belong to an admitted peer. One that opened after a pair has its peer does not."""
        self._heard: set[int] = set()
        """Connections through which a frame came."""
        self._peers: set[int] = set()
        """Open connections of peers."""
        self._has_left = False
        self._connected: int | None = None
        """The descriptor of a connector's newest connection."""
        self._socket = socket
        self._cannot_tell_peers = self._has_many_peers or socket.type == zmq.PUSH
        """True if no frame shows which connections are peers': there are many peers, or this socket only sends."""
        self._monitor = socket.get_monitor_socket(WATCHED)
        self._zap = self._open_zap(context) if credentials is not None else None
        watched = [self._monitor] if self._zap is None else [self._monitor, self._zap]
        self.descriptors = [int(watched_socket.get(zmq.FD)) for watched_socket in watched]
        self.serve()  # a descriptor reports only what comes after the events have been read once

    @staticmethod
    def _open_zap(context: Context) -> Socket | None:
        """A context has one ZAP handler; links that share a context (inproc) need none."""
        if context is zmq.Context.instance():
            return None
        zap = context.socket(zmq.REP)
        zap.bind(ZAP_ENDPOINT)
        return zap

    @property
    def refused(self) -> int:
        """The number of accepted connections whose peers were not admitted."""
        admitted = min(self._admitted, 1) if self._takes_one else self._admitted
        return max(self._accepted - admitted, 0)

    @property
    def connections(self) -> list[int]:
        """Descriptors of the open connections to peers; of all connections if no frame can tell which are peers'."""
        if self._peers and not self._has_many_peers:
            return sorted(self._peers)
        if self._cannot_tell_peers:
            return sorted(self._open)
        return []

    @property
    def peer_left(self) -> bool:
        """True if a peer was admitted and no peer's connection is open any more. A stranger's connection may be open.

        A pair's peer, and a listener, has left for good once its connection broke: libzmq connects again by itself,
        perhaps to a successor, and what was under way is lost.
        """
        if self._has_many_peers:
            return self._admitted > 0 and not self._open
        if self._has_left:
            return True
        if self._admitted == 0 or self._peers:
            return False
        has_met_all = self._met >= self._admitted
        return has_met_all or not self._may_be_admitted

    def meet(self, descriptor: int) -> None:
        """Note a connection as a peer's, since a frame came through it."""
        if descriptor not in self._heard:
            self.serve()
            self._note_peer(descriptor)

    def _note_peer(self, descriptor: int) -> None:
        self._heard.add(descriptor)
        self._met += 1
        if descriptor in self._open:
            self._peers.add(descriptor)

    def serve(self) -> None:
        """Note connections that opened and closed, and answer requests for admission."""
        while int(self._monitor.get(zmq.EVENTS)) & zmq.POLLIN:
            event, _endpoint = self._monitor.recv_multipart()
            self._note(*MONITORED.unpack(event))
        self._keep_room()
        while self._zap is not None and int(self._zap.get(zmq.EVENTS)) & zmq.POLLIN:
            request: Sequence[bytes] = self._zap.recv_multipart()
            self._zap.send_multipart(self._verdict(request))

    def _keep_room(self) -> None:
        """End the oldest connections that brought no frame, if there are too many.

        A peer that is among them connects again; a pair's peer is refused then, and gets PeerGone.
        """
        if self._cannot_tell_peers or len(self._open) - len(self._peers) <= MOST_STRANGERS:
            return
        strangers = [descriptor for descriptor in self._open if descriptor not in self._peers]
        for descriptor in strangers[:-MOST_STRANGERS]:
            end_connection(descriptor, self._open[descriptor])

    def _verdict(self, request: Sequence[bytes]) -> list[bytes]:
        """ZAP's reply: version, request id, status, text, user id, metadata. A pair's door takes no second peer."""
        version, request_id, domain, _address, _identity, mechanism, *credentials = request
        doorman = self.doors[domain]
        is_occupied = doorman._takes_one and doorman._admitted > 0
        has_credentials = (mechanism, tuple(credentials)) == self._credentials
        if has_credentials and not is_occupied:
            status = b"200"
            text = b"OK"
        else:
            status = b"400"
            text = b"unknown run"
        return [version, request_id, status, text, b"", b""]

    def _note(self, event: int, descriptor: int) -> None:
        match event:
            case zmq.EVENT_ACCEPTED:
                self._accepted += 1
                self._opened(descriptor)
            case zmq.EVENT_CONNECTED:
                self._connected = descriptor
                self._opened(descriptor)
            case zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._admitted += 1
                if self._connected is not None:
                    self._note_peer(self._connected)
            case zmq.EVENT_DISCONNECTED:
                self._open.pop(descriptor, None)
                self._may_be_admitted.discard(descriptor)
                is_connector_of_one = self._connected is not None and not self._has_many_peers
                has_one_peer = self._takes_one or is_connector_of_one
                if has_one_peer and descriptor in self._peers:
                    self._has_left = True
                self._peers.discard(descriptor)

    def _opened(self, descriptor: int) -> None:
        """Note a connection, and set its TCP_NODELAY: libzmq always sets it, and has no option for it."""
        set_nodelay(descriptor, self._nodelay)
        self._open[descriptor] = peer_of(descriptor)
        is_too_late = self._takes_one and self._admitted > 0
        if not is_too_late:
            self._may_be_admitted.add(descriptor)
        self._heard.discard(descriptor)

    def close(self) -> None:
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        if self._zap is not None:
            self._zap.close(linger=0)


class Audience:
    """The number of subscribers that have joined an XPUB."""

    def __init__(self, xpub: Socket) -> None:
        self._xpub = xpub
        self.count = 0

    def serve(self) -> None:
        """Count subscribers that came and left."""
        while int(self._xpub.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            subscription = self._xpub.recv(zmq.DONTWAIT)
            if subscription[1:] != JOINED:
                continue
            if subscription[:1] == SUBSCRIBED:
                self.count += 1
            else:
                self.count -= 1
