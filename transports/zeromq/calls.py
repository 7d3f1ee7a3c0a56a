"""A ZeroMQ socket's batch calls by pyzmq itself: for wheels that hide libzmq, and for fan-in, where little flows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import zmq

from transports.frames import FrameBatch
from transports.waiting import READABLE, Sleeper

if TYPE_CHECKING:
    from transports.zeromq.bounce import Bouncer


class Calls(Protocol):
    """What a link needs of a socket; transports/zeromq/compiled.py has the compiled form."""

    @property
    def bouncer(self) -> Bouncer | None:
        """For one message at a time, where that is compiled."""

    def send(self, batch: FrameBatch, first: int) -> int: ...

    def receive(self, batch: FrameBatch) -> int:
        """Append what is there; how many frames were too long and dropped."""

    def events(self) -> int: ...

    def sleep(self, wanted: int, until_ns: int) -> bool:
        """Until `until_ns` of the monotonic clock, or something comes, unless an event that is `wanted` is there.

        Whether one of the watched descriptors has something. libzmq's own is edge-triggered: the events are read first.
        """


class PlainCalls:
    """One pyzmq call a message; `watched` are descriptors beside the socket's own that end a sleep."""

    @property
    def bouncer(self) -> Bouncer | None:
        return None

    def __init__(self, socket: zmq.Socket[bytes], watched: Sequence[int] = ()) -> None:
        self._socket = socket
        self._watched = range(1, len(watched) + 1)
        self._sleeper = Sleeper([(descriptor, READABLE) for descriptor in (int(socket.get(zmq.FD)), *watched)])

    def send(self, batch: FrameBatch, first: int) -> int:
        for index in range(first, batch.count):
            try:
                self._send_frame(batch[index])
            except zmq.Again:
                return index
        return batch.count

    def _send_frame(self, frame: bytes) -> None:
        self._socket.send(frame, zmq.DONTWAIT)

    def receive(self, batch: FrameBatch) -> int:
        dropped = 0
        while batch.count < batch.capacity_frames and batch.used_bytes + batch.largest_frame <= len(batch.buffer):
            try:
                frame = self._receive_frame()
            except zmq.Again:
                break
            if len(frame) > batch.largest_frame:
                dropped += 1
            else:
                batch.append(frame)
        return dropped

    def _receive_frame(self) -> bytes:
        return self._socket.recv(zmq.DONTWAIT)

    def events(self) -> int:
        return int(self._socket.getsockopt(zmq.EVENTS))

    def sleep(self, wanted: int, until_ns: int) -> bool:
        if self.events() & wanted or not self._sleeper.sleep(until_ns):
            return False
        return any(map(self._sleeper.woke, self._watched))


Meet = Callable[[int], None]
"""Is told by which connection a frame came; inproc has none."""


def _tell(meet: Meet, frame: zmq.Frame) -> None:
    with contextlib.suppress(zmq.ZMQError):
        meet(int(frame.get(zmq.SRCFD)))


class FirstCalls(PlainCalls):
    """A listener's, until it knows its one peer."""

    def __init__(self, socket: zmq.Socket[bytes], meet: Meet) -> None:
        super().__init__(socket)
        self._meet = meet

    def _receive_frame(self) -> bytes:
        frame = self._socket.recv(zmq.DONTWAIT, copy=False)
        _tell(self._meet, frame)
        return frame.bytes


class FanInCalls(PlainCalls):
    """A ROUTER's: takes from every peer, speaks to each of those it has heard."""

    def __init__(self, socket: zmq.Socket[bytes], watched: Sequence[int], meet: Meet) -> None:
        super().__init__(socket, watched)
        self._meet = meet
        self._peers: set[bytes] = set()

    def _receive_frame(self) -> bytes:
        identity, *parts = self._socket.recv_multipart(zmq.DONTWAIT, copy=False)
        _tell(self._meet, identity)
        self._peers.add(identity.bytes)
        return b"".join(part.bytes for part in parts)

    def _send_frame(self, frame: bytes) -> None:
        for identity in self._peers:
            self._socket.send_multipart([identity, frame], zmq.DONTWAIT)
