"""The connections that a node has accepted, read back at the node's own end, whatever namespace it is in."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any

from transports.borrowed import borrowed
from transports.sockets import described

INTERNET = (socket.AF_INET, socket.AF_INET6)


def accepted_sockets(pid: int, port: int) -> list[dict[str, Any]]:
    """local, peer and tcp_nodelay of each; OSError where this system, or the node's owner, does not let us look."""
    found = [end for descriptor in _sockets(pid) for end in _described(pid, descriptor)]
    return [end for end in found if end["local"].endswith(f":{port}")]


def _sockets(pid: int) -> list[int]:
    names = os.listdir(f"/proc/{pid}/fd")
    return [int(name) for name in names if _target(f"/proc/{pid}/fd/{name}").startswith("socket:")]


def _target(link: str) -> str:
    """Nothing where it has gone meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        return os.readlink(link)
    return ""


def _described(pid: int, descriptor: int) -> list[dict[str, Any]]:
    """Nothing where it is none of TCP, is not connected, or has gone meanwhile."""
    with borrowed(pid, descriptor) as sock, contextlib.suppress(OSError):
        return [described(sock)] if sock.family in INTERNET else []
    return []
