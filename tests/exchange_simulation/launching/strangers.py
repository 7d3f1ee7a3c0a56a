"""Strangers at a component's port, who speak none of its protocols."""

from __future__ import annotations

import contextlib
import os
import socket

GARBAGE = (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(5000), b"\xff" + bytes(8) + b"\x7f\x03" + os.urandom(60))


def speak_garbage(port: int) -> None:
    for garbage in GARBAGE:
        stranger = socket.create_connection(("127.0.0.1", port))
        with stranger, contextlib.suppress(ConnectionError):  # turned away while it speaks
            stranger.sendall(garbage)
