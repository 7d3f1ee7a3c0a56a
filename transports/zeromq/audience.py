"""Publishing to subscribers: nothing is lost at the start, nor to who is slow.

A subscription takes its time to reach the publisher, who would drop what matches none. So each subscriber's last one is
JOINED, which no frame begins with: when the publisher has it, it has those before. And its XPUB refuses a frame for
which one of the matching subscribers has no room (XPUB_NODROP), where it would drop it.
"""

from __future__ import annotations

import zmq

from transports.base import Address
from transports.pattern import Pattern
from transports.topics import KEY_END, check_key, prefixes

Socket = zmq.Socket[bytes]
JOINED = b"\0joined"
SUBSCRIBED = b"\1"


def prepare(socket: Socket, address: Address) -> None:
    """Before it meets anybody: nobody drops what there is no room for, and who subscribes says to what."""
    if address.pattern is Pattern.REQUESTS and socket.type == zmq.ROUTER:
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    if socket.type == zmq.XPUB:
        socket.setsockopt(zmq.XPUB_NODROP, 1)
        socket.setsockopt(zmq.XPUB_VERBOSER, 1)
    if socket.type == zmq.SUB:
        for prefix in (*subscriptions(address), JOINED):
            socket.setsockopt(zmq.SUBSCRIBE, prefix)


def subscriptions(address: Address) -> list[bytes]:
    """What frames begin with that a subscriber is to have."""
    if address.pattern is not Pattern.TOPIC:
        return [b""]
    return [prefix for key in address.keys for prefix in prefixes(check_key(key))]


def prefix_of(address: Address) -> bytes:
    """What stands before a frame of the publisher's."""
    return check_key(address.keys[0]).encode() + KEY_END


class Audience:
    """Who has joined an XPUB."""

    def __init__(self, xpub: Socket) -> None:
        self._xpub = xpub
        self.count = 0

    def serve(self) -> None:
        """Take note of who came and who left."""
        while int(self._xpub.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            said = self._xpub.recv(zmq.DONTWAIT)
            if said[1:] == JOINED:
                self.count += 1 if said[:1] == SUBSCRIBED else -1
