"""The connections that a server's process has accepted, read from its own descriptors."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from transports.sockets import INTERNET, borrowed_socket, describe


def accepted_sockets(pid: int, port: int) -> list[dict[str, Any]]:
    """Local, peer and tcp_nodelay of each connection accepted on a port, in whatever network namespace.

    OSError if the system does not let us look, or the process is not ours.
    """
    accepted = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        connection = _connection(pid, int(descriptor))
        if connection is not None and connection["local"].endswith(f":{port}"):
            accepted.append(connection)
    return accepted


def _connection(pid: int, descriptor: int) -> dict[str, Any] | None:
    """Describe a connection; None if the descriptor is no connected TCP socket, or was closed meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        if not os.readlink(f"/proc/{pid}/fd/{descriptor}").startswith("socket:"):
            return None
        with borrowed_socket(pid, descriptor) as sock, contextlib.suppress(OSError):
            if sock.family in INTERNET:
                return describe(sock)
    return None
