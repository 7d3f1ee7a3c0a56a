"""The connections that a node has accepted, read back at the node's own end."""

from __future__ import annotations

import contextlib
from typing import Any

import psutil

from transports.borrowed import borrowed
from transports.sockets import described


def accepted_sockets(pid: int, port: int) -> list[dict[str, Any]]:
    """local, peer and tcp_nodelay of each; OSError where this system, or the node's owner, does not let us look."""
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.Error as error:
        raise OSError(f"the node's sockets cannot be listed: {error}") from error
    found = []
    for connection in connections:
        if connection.status == psutil.CONN_ESTABLISHED and connection.laddr.port == port:
            found += _described(pid, connection.fd)
    return found


def _described(pid: int, descriptor: int) -> list[dict[str, Any]]:
    """Nothing where the connection has ended meanwhile."""
    with borrowed(pid, descriptor) as sock, contextlib.suppress(OSError):
        return [described(sock)]
    return []
