"""A listener for TLS of a test's node, with a certificate of the test's own authority."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.broker import is_listening
from tests.machine import until
from tests.transports.amqp.certificates import Certificate, make_authority, make_certificate
from transports.rabbitmq import Node


@dataclass(frozen=True)
class Secured:
    """A node with a second listener, for TLS."""

    node: Node
    port: int
    authority: Certificate

    def url(self, client: str = "compiled", host: str = "127.0.0.1", scheme: str = "amqps") -> str:
        return f"{scheme}://{self.node.user}@{host}:{self.port}/%2F?client={client}"


@contextlib.contextmanager
def tls_listener(node: Node, folder: Path) -> Iterator[Secured]:
    """Let the node listen for TLS, with a certificate that is made in the folder, until the context ends."""
    authority = make_authority(folder)
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        node.evaluate(_start(port, authority, make_certificate(folder, authority)))
        until(lambda: is_listening(port), "a TLS listener")
        yield Secured(node, port, authority)
        node.evaluate(f"rabbit_networking:stop_tcp_listener({{{{127, 0, 0, 1}}, {port}, inet}})")
        until(lambda: not is_listening(port), "no TLS listener")


def _start(port: int, authority: Certificate, server: Certificate) -> str:
    """Return an Erlang expression with which a node listens for TLS."""
    files = {"cacertfile": authority.certificate, "certfile": server.certificate, "keyfile": server.key}
    file_options = ", ".join(f'{{{name}, "{path}"}}' for name, path in files.items())
    options = f"[{file_options}, {{verify, verify_none}}]"
    place = f'{{"127.0.0.1", {port}}}'
    return f"application:ensure_all_started(ssl), rabbit_networking:start_ssl_listener({place}, {options}, 2)"
