"""Where a node runs: on this host's loopback, or in another network namespace of this host."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Where:
    host: str = "127.0.0.1"
    """The address on which it listens."""
    prefix: tuple[str, ...] = ()
    """What goes before its command, so that it is there."""
    open_socket: Callable[[], socket.socket] = socket.socket
    """A new TCP socket that is there, while we stay here."""
