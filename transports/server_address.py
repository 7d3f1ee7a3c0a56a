"""The address of a server with a protocol of its own, such as NATS or Redis, and connecting to it."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from transports.base import Address, BadAddress, PeerGone
from transports.sockets import connect_socket
from transports.waiting import Sleeper

RETRY_NS = 10_000_000
LEAST_PATIENCE_S = 0.01


@dataclass(frozen=True)
class ServerAddress:
    """A server's host and port, and our user there."""

    host: str
    port: int
    user: str

    @classmethod
    def of(cls, address: Address, usual_port: int, password_variable: str) -> ServerAddress:
        """Return the parts of an address. BadAddress if a part is missing or wrong, or if the URL has a password.

        `password_variable`: the environment's variable that has the password instead.
        """
        parts = urlsplit(address.url)
        form = f"it takes the form {parts.scheme}://host:port"
        if parts.password is not None:
            raise BadAddress(f"{address.masked_url}: a URL takes no password: set {password_variable}")
        try:
            port = parts.port
        except ValueError:
            port = 0
        if port == 0:
            raise BadAddress(f"{address.masked_url}: the port is to be 1..65535")
        if not parts.hostname:
            raise BadAddress(f"{address.masked_url!r} lacks a host: {form}")
        if parts.path not in ("", "/"):
            raise BadAddress(f"{address.masked_url}: {parts.path!r} means nothing here: {form}")
        return cls(parts.hostname, port or usual_port, unquote(parts.username or ""))

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"

    def connect(self, address: Address, until_ns: int, server: str) -> socket.socket:
        """Connect; try again until `until_ns`. PeerGone if no server answers; `server` is its kind, for the error."""
        while True:
            patience_s = max((until_ns - time.monotonic_ns()) / 1e9, LEAST_PATIENCE_S)
            try:
                return connect_socket(self.host, self.port, patience_s, address)
            except OSError as error:
                if time.monotonic_ns() >= until_ns:
                    why = error.strerror or str(error)
                    raise PeerGone(f"no {server} server answers at {self.place} ({why})") from error
                Sleeper([]).sleep(time.monotonic_ns() + RETRY_NS)
