"""The sockets of ZeroMQ links, and the endpoints at which they meet.

pair      PAIR and PAIR, which takes one peer, so no stranger ever gets an answer; with `?topology=simplex` two
          connections of PUSH and PULL, the second on the port that `back` names
fan-in    a ROUTER, and DEALERs
queue     a PULL at each listener; each PUSH connects to all listeners and deals its messages round-robin: without a
          broker the fastest listener cannot take more than the others
fanout,   publishers have an XPUB, which waits for its slowest subscriber (with `full=drop` it drops frames for a
topic     subscriber without room), and a PULL for replies; subscribers have a SUB and a PUSH, which connect to every
          publisher
requests  a ROUTER, which knows the sender of each request, and DEALERs

Subscriptions take time to reach a publisher, which drops messages that match none. So the last subscription of each
subscriber is JOINED, with which no frame begins: a publisher that has JOINED has the subscriber's other ones too.

A listener is a PLAIN server whose password is the token: libzmq turns away a peer without the token, or that does not
speak ZMTP, before it reads a message. With keys it is a CURVE server, which admits the connector's key only, and needs
no token. inproc has no handshake and needs none: no other process can reach it.
"""

from __future__ import annotations

import errno
import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import zmq

from transports.base import (
    MANY_LISTENER_PATTERNS,
    Address,
    BadAddress,
    CannotListen,
    Link,
    Pattern,
    TransportError,
    port_of,
)
from transports.zeromq.calls import Socket
from transports.zeromq.doorman import JOINED, Context, credentials_of
from transports.zeromq.link import HIGH_WATER_MARK, ZeroMqLink

if TYPE_CHECKING:
    from transports.keys import Curve

RECONNECT_MS = 10
HANDSHAKE_MS = 60_000
LINGER_MS = 1000
MAX_MESSAGE_BYTES = 2 << 20
"""libzmq drops a peer that announces a longer message, before it allocates memory. Benchmarks send up to 1 MiB."""


class Kinds(NamedTuple):
    """The kinds of an end's sockets; without `outbound` one socket serves both directions."""

    inbound: int
    outbound: int | None = None


SIMPLEX = Kinds(zmq.PULL, zmq.PUSH)
LISTENER = {
    Pattern.PAIR: Kinds(zmq.PAIR),
    Pattern.FAN_IN: Kinds(zmq.ROUTER),
    Pattern.QUEUE: Kinds(zmq.PULL),
    Pattern.FANOUT: Kinds(zmq.PULL, zmq.XPUB),
    Pattern.TOPIC: Kinds(zmq.PULL, zmq.XPUB),
    Pattern.REQUESTS: Kinds(zmq.ROUTER),
}
CONNECTOR = {
    Pattern.PAIR: Kinds(zmq.PAIR),
    Pattern.FAN_IN: Kinds(zmq.DEALER),
    Pattern.QUEUE: Kinds(zmq.PUSH),
    Pattern.FANOUT: Kinds(zmq.SUB, zmq.PUSH),
    Pattern.TOPIC: Kinds(zmq.SUB, zmq.PUSH),
    Pattern.REQUESTS: Kinds(zmq.DEALER),
}


def _curve(address: Address, end: str) -> Curve | None:
    """The keys of this end; None if the address names none. BadAddress if they cannot be used."""
    if "keys" not in address.options:
        return None
    from transports.keys import Keys

    if address.scheme == "zeromq+inproc":
        raise BadAddress(f"{address.url}: no other process can reach it, so it takes no keys")
    return Keys.of(address).curve(end)


def _open(address: Address, kinds_of_patterns: dict[Pattern, Kinds], curve: Curve | None) -> ZeroMqLink:
    """A link on new sockets."""
    kinds = SIMPLEX if address.simplex else kinds_of_patterns[address.pattern]
    # Only sockets of one context meet over inproc.
    context = zmq.Context.instance() if address.scheme == "zeromq+inproc" else zmq.Context()
    inbound = _socket(context, address, kinds.inbound)
    outbound = inbound
    if kinds.outbound is not None:
        outbound = _socket(context, address, kinds.outbound)
    _prepare(outbound if outbound.type == zmq.XPUB else inbound, address)
    return ZeroMqLink(address, context, inbound, outbound, credentials_of(address.token, curve))


def _socket(context: Context, address: Address, kind: int) -> Socket:
    socket = context.socket(kind)
    socket.set_hwm(int(address.options.get("hwm", HIGH_WATER_MARK)))
    for name, option in (("sndbuf", zmq.SNDBUF), ("rcvbuf", zmq.RCVBUF)):
        if name in address.options:
            socket.setsockopt(option, int(address.options[name]))
    socket.linger = LINGER_MS  # `bind` copies the value into the listener; libzmq's default is infinite
    socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
    socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
    socket.setsockopt(zmq.IPV6, address.place.startswith("["))
    return socket


def _prepare(socket: Socket, address: Address) -> None:
    """Make a ROUTER for requests and an XPUB refuse frames without room instead of dropping them; subscribe a SUB."""
    if address.pattern is Pattern.REQUESTS and socket.type == zmq.ROUTER:
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    if socket.type == zmq.XPUB:
        drops = address.options.get("full") == "drop"
        socket.setsockopt(zmq.XPUB_NODROP, 0 if drops else 1)
        socket.setsockopt(zmq.XPUB_VERBOSER, 1)
    if socket.type == zmq.SUB:
        for prefix in (*_subscriptions(address), JOINED):
            socket.setsockopt(zmq.SUBSCRIBE, prefix)


def _subscriptions(address: Address) -> list[bytes]:
    """The prefixes of the frames that a subscriber asks for. BadAddress for a pattern that prefixes cannot express."""
    if address.pattern is not Pattern.TOPIC:
        return [b""]
    from transports.topics import check_key, prefixes

    subscriptions: list[bytes] = []
    for key in address.keys:
        subscriptions += prefixes(check_key(key))
    return subscriptions


def _endpoint(address: Address) -> str:
    """The address as libzmq writes it. BadAddress if ZeroMQ does not take a part of it."""
    kind = address.scheme.partition("+")[2] or "tcp"
    if kind == "tcp":
        address.host_and_port()
    if not address.place:
        raise BadAddress(f"{address.url!r} lacks a place behind {address.scheme}://")
    if "back" in address.options and not _has_second_connection(address):
        raise BadAddress(f"{address.url}: back is the second port of topology=simplex, fanout or topic")
    try:
        address.place.encode()
    except UnicodeEncodeError:
        raise BadAddress(
            f"{address.url!r}: libzmq takes UTF-8 only: name another path, or another folder with TMPDIR"
        ) from None
    _subscriptions(address)
    return f"{kind}://{address.place}"


def _has_second_connection(address: Address) -> bool:
    """True if a link has a connection for each direction."""
    return address.simplex or LISTENER[address.pattern].outbound is not None


def _endpoints(address: Address) -> list[str]:
    """The endpoint at which the listener receives, and the one at which it sends if that is another."""
    endpoint = _endpoint(address)
    if _has_second_connection(address):
        return [endpoint, _back_endpoint(address)]
    return [endpoint]


def _back_endpoint(address: Address) -> str:
    """The endpoint of the second connection: the port that `back` names, or a name like the first endpoint's."""
    kind = address.scheme.partition("+")[2]
    if kind in {"ipc", "inproc"}:
        return f"{kind}://{address.place}.back"
    back = address.options.get("back", "0")
    if port_of(back) is None:
        raise BadAddress(f"{address.url}: back is {back!r}; it takes a port, 0..65535")
    return f"tcp://{address.place.rpartition(':')[0]}:{back}"


def _places(address: Address) -> list[Address]:
    """The addresses of the listeners to which a connector connects, each with its own place and `back`.

    For example: the place `host:1,host:2` with `back=3,4` names two listeners.
    """
    if address.pattern not in MANY_LISTENER_PATTERNS:
        return [address]
    places = [replace(address, place=place) for place in address.place.split(",")]
    if "back" not in address.options:
        return places
    backs = address.options["back"].split(",")
    if len(backs) != len(places):
        raise BadAddress(
            f"{address.url}: back is {','.join(backs)!r}; it takes a port for each of {len(places)} places"
        )
    return [replace(place, options={**place.options, "back": back}) for place, back in zip(places, backs, strict=True)]


def listen(address: Address) -> Link:
    endpoints = _endpoints(address)
    endpoint = endpoints[0]
    if endpoint.startswith("ipc://"):
        path = endpoint.removeprefix("ipc://")
        if Path(path).exists() and not _is_orphan(path):
            raise CannotListen(f"cannot listen on {address.url}: {path} exists; choose another path")
    curve = _curve(address, "listener")
    link = _open(address, LISTENER, curve)
    if address.pattern is Pattern.PAIR and address.scheme != "zeromq+inproc":
        link.await_first_frame()
    try:
        link.bind(endpoints, curve)
    except zmq.ZMQError as error:
        link.close(0)
        raise CannotListen(f"cannot listen on {address.url}: {error.strerror}; choose another") from error
    if endpoint.startswith("tcp://"):
        link.url = _with_ports(address, list(link.bound.values()))
    return link


def _is_orphan(path: str) -> bool:
    """True for a socket file without a listener, left by a process that died. libzmq replaces such a file."""
    if not Path(path).is_socket():
        return False
    with socket.socket(socket.AF_UNIX) as caller:
        return caller.connect_ex(path) == errno.ECONNREFUSED


def _with_ports(address: Address, bound: list[str]) -> str:
    """The URL with the ports that the sockets got."""
    ports = [endpoint.rpartition(":")[2] for endpoint in bound]
    place = f"{address.place.rpartition(':')[0]}:{ports[0]}"
    options = dict(address.options)
    if len(ports) > 1:
        options["back"] = ports[1]
    return replace(address, place=place, options=options).url


def connect(address: Address, _until_ns: int) -> Link:
    """Open a connector's link. It returns at once; libzmq connects as soon as a listener is there."""
    listeners = [_endpoints(place) for place in _places(address)]
    curve = _curve(address, "connector")
    link = _open(address, CONNECTOR, curve)
    try:
        for endpoints in listeners:
            # A listener's endpoints are its inbound and its outbound; the connector receives at the latter.
            link.connect(endpoints[::-1], address.token, curve)
    except zmq.ZMQError as error:
        link.close(0)
        raise TransportError(f"cannot connect to {address.url}: {error.strerror}") from error
    return link
