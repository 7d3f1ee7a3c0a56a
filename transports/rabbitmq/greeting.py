"""Whether somebody speaks AMQP 0-9-1, and who: the first frame of a connection, without a client library."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
CONNECTION_START = struct.pack(">HH", 10, 10)
FRAME_HEADER = struct.Struct(">BHI")
METHOD_FRAME = 1


@dataclass(frozen=True)
class Greeting:
    """What a broker says of itself in Connection.Start."""

    product: str
    version: str
    platform: str


def greeting_of(
    host: str, port: int, patience_s: float, open_socket: Callable[[], socket.socket] = socket.socket
) -> Greeting | None:
    """None where nobody listens, nobody answers, or no AMQP is spoken. `open_socket` makes the socket for asking."""
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
    """A server property that is a long string: short name, `S`, length, text. Empty where there is none."""
    _, found, rest = method.partition(bytes([len(name)]) + name + b"S")
    if not found or len(rest) < 4:
        return ""
    return rest[4 : 4 + int.from_bytes(rest[:4], "big")].decode(errors="replace")
