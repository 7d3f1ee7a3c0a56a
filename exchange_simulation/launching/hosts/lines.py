"""Messages between the launcher and a host: a JSON object on each line, and after some lines the bytes of a file.

A line with `bytes` is followed by this many bytes.
"""

from __future__ import annotations

import os
import select
import time
from typing import Any

import orjson

from exchange_simulation.launching.interrupts import interruptible

CHUNK = 1 << 16


class PeerSilent(Exception):
    """The other end has closed its pipe, said nothing for too long, or said something that is no message."""


class LineReader:
    """Reads messages and bytes from a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unread = b""

    def message(self, patience_s: float | None = None) -> dict[str, Any]:
        """Return the next message. PeerSilent if none comes within `patience_s`; None waits for ever."""
        until_s = None if patience_s is None else time.monotonic() + patience_s
        while b"\n" not in self._unread:
            self._unread += self._read(until_s)
        line, _, self._unread = self._unread.partition(b"\n")
        return _message_of(line)

    def messages(self, patience_s: float | None = None) -> list[dict[str, Any]]:
        """Wait for bytes, and return the messages that are whole by then, which may be none.

        PeerSilent if no byte comes within `patience_s`; None waits for ever.
        """
        self._unread += self._read(None if patience_s is None else time.monotonic() + patience_s)
        *lines, self._unread = self._unread.split(b"\n")
        return [_message_of(line) for line in lines]

    def some_bytes(self, most: int, patience_s: float) -> bytes:
        """Return between 1 and `most` bytes. PeerSilent if none come within `patience_s`."""
        if not self._unread:
            self._unread = self._read(time.monotonic() + patience_s)
        chunk = self._unread[:most]
        self._unread = self._unread[most:]
        return chunk

    def rest(self) -> bytes:
        """Return the bytes that were read and not returned yet, for a reader of another kind."""
        rest = self._unread
        self._unread = b""
        return rest

    def _read(self, until_s: float | None) -> bytes:
        wait_s = None if until_s is None else max(0.0, until_s - time.monotonic())
        with interruptible():
            readable, _, _ = select.select([self._descriptor], [], [], wait_s)
        if not readable:
            raise PeerSilent("it did not answer in time")
        chunk = os.read(self._descriptor, CHUNK)
        if not chunk:
            raise PeerSilent("it has ended")
        return chunk


def _message_of(line: bytes) -> dict[str, Any]:
    """Return the message of a line. PeerSilent if the line is no message."""
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise PeerSilent(f"it said {line[:100].decode(errors='replace')!r}, which is no message") from error
    if not isinstance(message, dict):
        raise PeerSilent(f"it said {line[:100].decode(errors='replace')!r}, which is no message")
    return message


def as_line(message: dict[str, Any]) -> bytes:
    """Return the message as a line."""
    return orjson.dumps(message) + b"\n"


def write_all(descriptor: int, content: bytes) -> None:
    """Write all bytes to a pipe, which may take a part at a time. BrokenPipeError if the other end is gone."""
    view = memoryview(content)
    while view:
        written = os.write(descriptor, view)
        view = view[written:]
