"""The kernel's view of live TCP sockets: addresses, TCP_NODELAY, and the counters of struct tcp_info (linux/tcp.h).

Each function takes a descriptor or a socket: one of ours, or one borrowed from another process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

from transports.base import Address, BadAddress, CannotListen

INTERNET = (socket.AF_INET, socket.AF_INET6)
TCP_INFO = getattr(socket, "TCP_INFO", 11)
TCP_INFO_BYTES = 232
_OFFSETS = {
    "retransmits": (100, "I"),
    "bytes_in": (128, "Q"),
    "segments_out": (136, "I"),
    "segments_in": (140, "I"),
    "bytes_out": (200, "Q"),  # bytes that were sent again count again
}
"""Each counter's offset in struct tcp_info, and its type as in the struct module."""
COUNTERS = tuple(_OFFSETS)
_SENT_AGAIN_OFFSET = 208
"""The offset of tcpi_bytes_retrans: bytes that were sent again."""
REACHABLE_S = 5.0
"""How long this host may take to refuse a connection to itself."""
PIDFD_GETFD = 438
"""The system call's number: the same on x86 and on every architecture added since 2011."""


def set_nodelay(descriptor: int, nodelay: bool) -> None:
    """Set TCP_NODELAY on a live connection. A descriptor that is closed, or no TCP socket, is ignored."""
    with contextlib.suppress(OSError), _duplicate(descriptor) as sock:
        if sock.family in INTERNET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)


BUFFER_OPTIONS = {"sndbuf": socket.SO_SNDBUF, "rcvbuf": socket.SO_RCVBUF}


def set_buffers(sock: socket.socket, address: Address) -> None:
    """Set the sizes of a socket's kernel buffers that its address asks for; the kernel doubles them.

    Call it before the socket is connected: a peer that knows a larger window would fill it, and bytes would be dropped.
    """
    for name, option in BUFFER_OPTIONS.items():
        if name in address.options:
            sock.setsockopt(socket.SOL_SOCKET, option, int(address.options[name]))


def connect_socket(host: str, port: int, timeout_s: float, address: Address | None = None) -> socket.socket:
    """Connect to the first of a host's addresses that accepts, with the buffers that `address` asks for.

    Returns the socket, or raises the OSError of the last attempt. BadAddress if `host` cannot be a host's name.
    """
    problem = OSError(f"{host} has no address")
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise BadAddress(f"{host!r} is no name of a host: each part between two dots has 1 to 63 characters") from None
    for family, kind, protocol, _, place in places:
        sock = socket.socket(family, kind, protocol)
        try:
            if address is not None:
                set_buffers(sock, address)
            sock.settimeout(timeout_s)
            sock.connect(place)
            return sock
        except OSError as error:
            sock.close()
            problem = error
    raise problem


@contextlib.contextmanager
def reserved_port(host: str, port: int = 0, open_socket: Callable[[], socket.socket] = socket.socket) -> Iterator[int]:
    """Bind a port without listening, so that no other process gets it; 0 takes a free port. Returns its number.

    The process that listens on the port sets SO_REUSEADDR too. OSError, or OverflowError, if the port cannot be had;
    CannotListen if nobody could connect to it.
    """
    with open_socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((host, port))
        reserved: int = holder.getsockname()[1]
        _check_reachable(host, reserved, open_socket)
        yield reserved


def _check_reachable(host: str, port: int, open_socket: Callable[[], socket.socket]) -> None:
    """CannotListen if a connection to this unused port is not refused: then no packet reaches this host itself.

    Without this check both ends of a connection would wait for each other until their patience is over.
    """
    with open_socket() as sock:
        sock.settimeout(REACHABLE_S)
        try:
            sock.connect((host, port))
        except ConnectionRefusedError:
            return
        except OSError as error:
            raise CannotListen(
                f"{host} cannot be reached from this host itself ({error.strerror or error}): "
                "bring its interface up, as `ip link set lo up` does for loopback"
            ) from error


def peer_of(descriptor: int) -> str | None:
    """The address of the peer; None if the descriptor is no connected TCP socket."""
    with contextlib.suppress(OSError), _duplicate(descriptor) as sock:
        if sock.family in INTERNET:
            return _name(sock.getpeername())
    return None


def end_connection(descriptor: int, peer: str | None) -> None:
    """Shut a connection down, so that its owner will close it, if the descriptor still leads to that peer."""
    with contextlib.suppress(OSError), _duplicate(descriptor) as sock:
        if sock.family in INTERNET and _name(sock.getpeername()) == peer:
            sock.shutdown(socket.SHUT_RDWR)


def read_back(descriptors: list[int], nodelay_asked: bool) -> list[dict[str, Any]]:
    """Local, peer, tcp_nodelay, tcp_nodelay_asked and counters of each descriptor that is a connected TCP socket."""
    connections = []
    for descriptor in descriptors:
        with contextlib.suppress(OSError), _duplicate(descriptor) as sock:
            if sock.family in INTERNET:
                connections.append({**describe(sock), "tcp_nodelay_asked": nodelay_asked, **counters(sock)})
    return connections


def counted_since(now: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the reading `now` of a link's connections, with each counter minus that of the reading `before`."""
    earlier_by_ends = {(connection["local"], connection["peer"]): connection for connection in before}
    differences = []
    for connection in now:
        earlier = earlier_by_ends.get((connection["local"], connection["peer"]), {})
        difference = dict(connection)
        for name in COUNTERS:
            if name in connection:
                difference[name] = connection[name] - earlier.get(name, 0)
        differences.append(difference)
    return differences


def describe(sock: socket.socket) -> dict[str, Any]:
    """Local, peer, tcp_nodelay and the kernel's buffers in bytes. OSError if the socket is not connected."""
    nodelay = bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
    names = {"local": _name(sock.getsockname()), "peer": _name(sock.getpeername())}
    buffers = {f"{name}_bytes": sock.getsockopt(socket.SOL_SOCKET, option) for name, option in BUFFER_OPTIONS.items()}
    return {**names, "tcp_nodelay": nodelay, **buffers}


def counters(sock: socket.socket) -> dict[str, int]:
    """Counters since the connection was made, without those that this kernel does not know.

    segments_out, segments_in (pure acknowledgements included), bytes_out, bytes_in (payload), retransmits.
    """
    try:
        return parse_tcp_info(sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, TCP_INFO_BYTES))
    except OSError:
        return {}


def bytes_that_left(descriptor: int) -> int | None:
    """The bytes of a TCP connection that the kernel has sent, each counted once; None if it is no connection any more.

    Bytes that a program has written and that wait in the kernel are not counted.
    """
    with contextlib.suppress(OSError, struct.error), _duplicate(descriptor) as sock:
        if sock.family in INTERNET:
            info = sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, TCP_INFO_BYTES)
            (sent,) = struct.unpack_from("=Q", info, _OFFSETS["bytes_out"][0])
            (sent_again,) = struct.unpack_from("=Q", info, _SENT_AGAIN_OFFSET)
            return int(sent - sent_again)
    return None


def parse_tcp_info(info: bytes) -> dict[str, int]:
    """The counters in a struct tcp_info, without those beyond its end: an older kernel's struct is shorter."""
    values = {}
    for name, (offset, kind) in _OFFSETS.items():
        if offset + struct.calcsize(f"={kind}") <= len(info):
            (values[name],) = struct.unpack_from(f"={kind}", info, offset)
    return values


def _name(address: tuple[Any, ...]) -> str:
    """host:port of a socket's address; IPv4 inside IPv6 is written as IPv4."""
    host = str(address[0]).removeprefix("::ffff:")
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"


def address_name(address: bytes, port: int) -> str:
    """host:port of an address in network order: 127.0.0.1:4711 or [::1]:4711.

    A link-local address has no zone (%eth0), since the bytes hold none.
    """
    family = socket.AF_INET if len(address) == 4 else socket.AF_INET6
    return _name((socket.inet_ntop(family, address), port))


@contextlib.contextmanager
def _duplicate(descriptor: int) -> Iterator[socket.socket]:
    """A duplicate of a descriptor, as a socket, closed at the end of the block: it would keep the connection open."""
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        yield sock


@contextlib.contextmanager
def borrowed_socket(pid: int, descriptor: int) -> Iterator[socket.socket]:
    """A duplicate of another process's socket, by pidfd_getfd (Linux 5.6).

    OSError if the socket is gone, if we may not trace that process, or if the system has no such call.
    """
    if not hasattr(os, "pidfd_open"):
        raise OSError("this system lends no descriptors: pidfd_getfd is Linux's")
    pidfd = os.pidfd_open(pid)
    try:
        duplicate = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, pidfd, descriptor, 0)
    finally:
        os.close(pidfd)
    if duplicate < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    with socket.socket(fileno=duplicate) as sock:
        yield sock
