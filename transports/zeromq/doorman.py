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
from dataclasses import dataclass
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


@dataclass
class OpenConnection:
    """An open connection of a socket."""

    remote_address: str | None
    may_be_admitted: bool
    """False if it opened after a pair had its peer: the door refuses it."""
    is_peers: bool = False
    """True once a frame came through it, which only an admitted peer can send; of a connector, after the handshake."""


class Doorman:
    """Admits peers to one socket, and follows its connections.

    ZAP says how many peers were admitted, and the monitor which connections opened and closed; only a frame shows which
    connection is a peer's.
    """

    def __init__(self, context: Context, socket: Socket, address: Address, credentials: Credentials | None) -> None:
        """`credentials`: those that peers have to show; None if another doorman of the context checks them for both."""
        self._has_many_peers = address.pattern not in BASIC_PATTERNS
        """True for several peers, whose connections cannot be distinguished."""
        self._is_pair = address.pattern is Pattern.PAIR
        """True if a second peer is refused."""
        self._credentials = credentials
        self._nodelay = address.nodelay
        self._accepted = 0
        """How many connections were accepted."""
        self._showed_credentials = 0
        """How many connections showed the right credentials, a pair's second peer not among them."""
        self._admitted = 0
        """How many handshakes succeeded."""
        self._met = 0
        """How many connections turned out to be peers'."""
        self._doormen = {DOOR: self}
        """The doormen of the context by the ZAP domain of their sockets."""
        self._open: dict[int, OpenConnection] = {}
        """The open connections by descriptor, oldest first."""
        self._with_frames: set[int] = set()
        """Descriptors through which a frame came since they opened. A frame may be read after its connection closed."""
        self._has_left = False
        """True if the only peer's connection broke."""
        self._connected: int | None = None
        """The descriptor of a connector's newest connection; None for a listener."""
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
        """Return the context's socket for requests for admission, of which a context has one.

        None for the context that links within a process (inproc) share: their peers need no admission.
        """
        if context is zmq.Context.instance():
            return None
        zap = context.socket(zmq.REP)
        zap.bind(ZAP_ENDPOINT)
        return zap

    def add_second_door(self, doorman: Doorman) -> None:
        """Check the credentials for the doorman of the listener's second socket, too."""
        self._doormen[SECOND_DOOR] = doorman

    @property
    def refused(self) -> int:
        """The number of accepted connections that did not show the credentials, and of a pair's further peers.

        A peer that showed the credentials is not refused if its handshake ran out of time because nobody served this
        door, as in a process that compiles: libzmq connects again.
        """
        further_peers = max(self._admitted - 1, 0) if self._is_pair else 0
        return max(self._accepted - self._showed_credentials, 0) + further_peers

    @property
    def connections(self) -> list[int]:
        """Descriptors of the open connections to peers; of all connections if no frame can tell which are peers'."""
        peers = self._peers
        if peers and not self._has_many_peers:
            return sorted(peers)
        if self._cannot_tell_peers:
            return sorted(self._open)
        return []

    @property
    def _peers(self) -> list[int]:
        """Descriptors of the open connections that turned out to be peers', oldest first."""
        return [descriptor for descriptor, connection in self._open.items() if connection.is_peers]

    @property
    def peer_left(self) -> bool:
        """True if a peer was admitted and no peer's connection is open any more. A stranger's connection may be open.

        A pair's peer, and a listener, has left for good once its connection broke: libzmq connects again by itself,
        perhaps to a successor, and what was under way is lost.
        """
        if self._has_many_peers:  # strangers cannot be told from peers, so every connection has to close
            return self._admitted > 0 and not self._open
        if self._has_left:
            return True
        if self._admitted == 0 or self._peers:
            return False
        # No open connection is known to be a peer's. A peer that has sent nothing yet may be behind one of them.
        has_met_all = self._met >= self._admitted
        may_hide_a_peer = any(connection.may_be_admitted for connection in self._open.values())
        return has_met_all or not may_hide_a_peer

    def meet(self, descriptor: int) -> None:
        """Note that a frame came through a connection, so that it is a peer's."""
        if descriptor not in self._with_frames:
            self.serve()  # the connection's opening may not have been noted yet
            self._note_peer(descriptor)

    def _note_peer(self, descriptor: int) -> None:
        self._with_frames.add(descriptor)
        self._met += 1
        if descriptor in self._open:
            self._open[descriptor].is_peers = True

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
        if self._cannot_tell_peers:
            return
        strangers = [descriptor for descriptor, connection in self._open.items() if not connection.is_peers]
        for descriptor in strangers[:-MOST_STRANGERS]:
            end_connection(descriptor, self._open[descriptor].remote_address)

    def _verdict(self, request: Sequence[bytes]) -> list[bytes]:
        """ZAP's reply: version, request id, status, text, user id, metadata. A pair's door takes no second peer."""
        version, request_id, domain, _address, _identity, mechanism, *credentials = request
        doorman = self._doormen[domain]
        if (mechanism, tuple(credentials)) != self._credentials:
            status = b"400"
            text = b"unknown run"
        elif doorman._is_pair and doorman._admitted > 0:
            status = b"400"
            text = b"the pair has its peer"
        else:
            doorman._showed_credentials += 1
            status = b"200"
            text = b"OK"
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
                self._closed(descriptor)

    def _opened(self, descriptor: int) -> None:
        """Note a connection, and set its TCP_NODELAY: libzmq always sets it, and has no option for it."""
        set_nodelay(descriptor, self._nodelay)
        is_too_late = self._is_pair and self._admitted > 0
        self._open[descriptor] = OpenConnection(peer_of(descriptor), may_be_admitted=not is_too_late)
        self._with_frames.discard(descriptor)  # the system gives the number of a closed connection to a new one

    def _closed(self, descriptor: int) -> None:
        connection = self._open.pop(descriptor, None)
        is_connector = self._connected is not None
        has_one_peer = self._is_pair or (is_connector and not self._has_many_peers)
        if connection is not None and connection.is_peers and has_one_peer:
            self._has_left = True

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
