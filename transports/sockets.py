"""What a live TCP socket says of itself, asked of the kernel by its descriptor, and Nagle's switch on it."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

from transports.tcp_info import counters, since


def set_nodelay(descriptor: int | None, nodelay: bool) -> None:
    """TCP_NODELAY of a live connection, whoever made it; nothing where it is gone, or is none of TCP."""
    with contextlib.suppress(OSError), _ours(descriptor) as sock:
        if sock.family in {socket.AF_INET, socket.AF_INET6}:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)


def read_back(descriptors: list[int], nodelay_asked: bool) -> list[dict[str, Any]]:
    """Of each descriptor that is a connected TCP socket: local, peer, tcp_nodelay, what was asked for, counters."""
    found = []
    for descriptor in descriptors:
        with contextlib.suppress(OSError), _ours(descriptor) as sock:
            if sock.family in {socket.AF_INET, socket.AF_INET6}:
                found.append({**described(sock), "tcp_nodelay_asked": nodelay_asked, **counters(sock)})
    return found


def counted_since(now: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two readings of a link's sockets: the later one, its counters as differences."""
    earlier = {(socket["local"], socket["peer"]): socket for socket in before}
    return [since(socket, earlier.get((socket["local"], socket["peer"]), {})) for socket in now]


def described(sock: socket.socket) -> dict[str, Any]:
    """local, peer, tcp_nodelay. OSError where it is not connected."""
    nodelay = bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
    return {"local": _name(sock.getsockname()), "peer": _name(sock.getpeername()), "tcp_nodelay": nodelay}


@contextlib.contextmanager
def _ours(descriptor: int | None) -> Iterator[socket.socket]:
    """A duplicate, closed at once: kept open, it would keep the connection alive. OSError where there is none."""
    with socket.socket(fileno=os.dup(-1 if descriptor is None else descriptor)) as sock:
        yield sock


def _name(address: tuple[Any, ...]) -> str:
    """host:port; a v4 address that a v6 socket accepted is written as v4."""
    host = str(address[0]).removeprefix("::ffff:")
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"
