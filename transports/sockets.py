"""What a live TCP socket says of itself, read back from the kernel by its descriptor."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any


def read_back(descriptors: list[int]) -> list[dict[str, Any]]:
    """local, peer and tcp_nodelay of each descriptor that is a connected TCP socket."""
    found = []
    for descriptor in descriptors:
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as sock:
            if sock.family in {socket.AF_INET, socket.AF_INET6}:
                nodelay = bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                found.append(
                    {"local": _name(sock.getsockname()), "peer": _name(sock.getpeername()), "tcp_nodelay": nodelay}
                )
    return found


def _name(address: tuple[Any, ...]) -> str:
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"
