"""A connection to a server: a buffer of incoming bytes, a buffer of outgoing bytes, and two bounds in each.

Buffers and bounds are arrays, so that the compiled calls that a link lends go on where Python stopped. Subclasses know
the protocol.
"""

from __future__ import annotations

import contextlib
import socket
import time
from abc import ABC, abstractmethod

import numpy as np

from transports.base import PeerGone
from transports.frames import Bytes, Longs
from transports.waiting import READABLE, WRITABLE, Sleeper

# Indexes of `bounds`.
BEGIN = 0
"""Where the incoming bytes begin that no reader has taken."""
END = 1
"""Where the incoming bytes end."""
UNSENT = 2
"""Where the outgoing bytes begin that are not sent."""
UNSENT_END = 3
"""Where the outgoing bytes end."""
BOUNDS = 4
"""The length of `bounds`."""


class ServerStream(ABC):
    """The bytes to and from one server."""

    def __init__(self, sock: socket.socket, bounds: Longs, incoming: Bytes, outgoing: Bytes) -> None:
        self._socket = sock
        self.fd = sock.fileno()
        self.bounds = bounds
        self.incoming = incoming
        self.outgoing = outgoing
        self._waiting_commands: list[bytes] = []
        """Commands that found no room in the outgoing buffer."""
        sock.setblocking(False)

    @abstractmethod
    def gone(self, why: str) -> PeerGone:
        """Return the error of a connection that ended. An error that the server reported before replaces `why`."""

    def fill(self) -> None:
        """Receive once, without waiting, as many bytes as the incoming buffer has room for. PeerGone.

        A `receive` calls it only while no whole frame waits. So it moves at most a part of one to the front of the
        buffer, and not all frames that wait.
        """
        bounds = self.bounds
        incoming = self.incoming
        begin = int(bounds[BEGIN])
        end = int(bounds[END])
        if begin == end:
            begin = 0
            end = 0
        elif end == len(incoming) and begin > 0:
            incoming[: end - begin] = incoming[begin:end].copy()
            end -= begin
            begin = 0
        bounds[BEGIN] = begin
        bounds[END] = end
        if end == len(incoming):
            return
        try:
            received = self._socket.recv_into(incoming.data[end:])
        except BlockingIOError:
            return
        except OSError as error:
            raise self.gone(error.strerror or str(error)) from error
        if received == 0:
            raise self.gone("it closed the connection")
        bounds[END] = end + received

    def write(self, command: bytes) -> None:
        """Send a command after all earlier bytes. PeerGone.

        What the socket does not take yet is sent by a later `flush`.
        """
        self._waiting_commands.append(command)
        self.flush()

    def flush(self) -> bool:
        """Send the outgoing bytes, then the commands that had no room among them. True if all of it was sent."""
        bounds = self.bounds
        while True:
            begin = int(bounds[UNSENT])
            end = int(bounds[UNSENT_END])
            if begin == end:
                begin = 0
                end = 0
                bounds[UNSENT] = begin
                bounds[UNSENT_END] = end
                if not self._waiting_commands:
                    return True
            while self._waiting_commands and end + len(self._waiting_commands[0]) <= len(self.outgoing):
                command = self._waiting_commands.pop(0)
                self.outgoing[end : end + len(command)] = np.frombuffer(command, np.uint8)
                end += len(command)
                bounds[UNSENT_END] = end
            try:
                bounds[UNSENT] = begin + self._socket.send(self.outgoing.data[begin:end])
            except BlockingIOError:
                return False
            except OSError as error:
                self._take_last_words()
                raise self.gone(error.strerror or str(error)) from error

    def _take_last_words(self) -> None:
        """Take in what the server sent before it hung up, so that `gone` can find its reason."""
        with contextlib.suppress(PeerGone):
            ServerStream.fill(self)  # not `self.fill`: an override may do more than receive

    @property
    def has_unsent(self) -> bool:
        return bool(self.bounds[UNSENT] < self.bounds[UNSENT_END] or self._waiting_commands)

    @property
    def has_waiting_commands(self) -> bool:
        """True if a command waits for room in the outgoing buffer."""
        return bool(self._waiting_commands)

    def events(self, readable: bool) -> tuple[int, int]:
        """Return (the descriptor, the events of a Sleeper): READABLE if asked for, WRITABLE if bytes are unsent."""
        events = READABLE if readable else 0
        if self.has_unsent:
            events |= WRITABLE
        return self.fd, events

    def sleep(self, until_ns: int, readable: bool = True) -> None:
        """Sleep until bytes have come (`readable`), unsent bytes can go, a signal, or `until_ns`."""
        Sleeper([self.events(readable)]).sleep(until_ns)

    def end(self, until_ns: int) -> None:
        """Tell the server that we send nothing more, and read until it hangs up, or `until_ns`.

        A socket that is closed with unread bytes resets its connection, and the server drops what it has not read yet.
        """
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            while time.monotonic_ns() < until_ns:
                Sleeper([(self.fd, READABLE)]).sleep(until_ns)
                with contextlib.suppress(BlockingIOError):
                    if not self._socket.recv_into(self.incoming.data):
                        return

    def close(self) -> None:
        self._socket.close()
