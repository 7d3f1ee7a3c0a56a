"""A node's address: where it listens, who may use it, and what can be found out about it from outside."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from transports.rabbitmq.process import NodeUsage, accepted_sockets, cpu_ns_of

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
CONNECTION_START = struct.pack(">HH", 10, 10)
FRAME_HEADER = struct.Struct(">BHI")
METHOD_FRAME = 1


@dataclass(frozen=True)
class NodeAddress:
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    vhost: str
    pid: int
    about: Mapping[str, Any] = field(repr=False)

    @property
    def url(self) -> str:
        """The URL without the password."""
        return f"amqp://{self.user}@{self.host}:{self.port}"

    def facts(self) -> dict[str, Any]:
        """product, version, erlang, pid, port, ready_after_s, settings."""
        return dict(self.about)

    def accepted(self) -> list[dict[str, Any]]:
        """Local, peer and tcp_nodelay of each connection that the node has accepted. OSError if we may not look."""
        return accepted_sockets(self.pid, self.port)

    def cpu_ns(self) -> int:
        """CPU time by one call of the kernel; `usage` reads a file for each thread. OSError if the node is gone."""
        return cpu_ns_of(self.pid)

    def usage(self) -> NodeUsage:
        """Read from /proc, without asking the node. OSError if the node is gone."""
        return NodeUsage.of(self.pid)


@dataclass(frozen=True)
class Greeting:
    """A broker's description of itself in Connection.Start."""

    product: str
    version: str
    platform: str


def greeting_of(
    host: str, port: int, patience_s: float, open_socket: Callable[[], socket.socket] = socket.socket
) -> Greeting | None:
    """Ask for the first frame of AMQP 0-9-1, without a client library. None if nobody answers with one in time."""
    try:
        with open_socket() as sock:
            sock.settimeout(patience_s)
            sock.connect((host, port))
            sock.sendall(PROTOCOL_HEADER)
            kind, _, size = FRAME_HEADER.unpack(_exactly(sock, FRAME_HEADER.size))
            if kind != METHOD_FRAME or size > 1 << 16:
                return None
            method = _exactly(sock, size)
    except OSError:
        return None
    if not method.startswith(CONNECTION_START):
        return None
    return Greeting(*(_text_property(method, name) for name in (b"product", b"version", b"platform")))


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise ConnectionResetError
        data += piece
    return data


def _text_property(method: bytes, name: bytes) -> str:
    """A server property that is a long string: short name, `S`, length, text. Empty if there is none."""
    _, found, rest = method.partition(bytes([len(name)]) + name + b"S")
    if not found or len(rest) < 4:
        return ""
    return rest[4 : 4 + int.from_bytes(rest[:4], "big")].decode(errors="replace")
