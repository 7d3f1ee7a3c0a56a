"""The error for servers whose sockets always have TCP_NODELAY."""

from __future__ import annotations

from transports.base import TransportError


class NagleNotHonoured(TransportError):
    """The user asked for Nagle's algorithm, and the server has no switch for it."""
