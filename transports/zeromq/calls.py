"""The calls of a ZeroMQ socket for batches, by pyzmq itself: one pyzmq call a message.

They serve wheels that hide libzmq's symbols, patterns with little traffic, and `?calls=plain`. Other links use the
compiled calls of transports/zeromq/compiled.py.
"""

from __future__ import annotations

import contextlib
import errno
from collections import deque
from collections.abc import Callable, Sequence

import zmq

from transports.frames import FrameBatch
from transports.waiting import READABLE, Sleeper

Socket = zmq.Socket[bytes]


class PlainCalls:
    """The calls that a link makes on a socket, for one frame a message.

    `watched`: further descriptors that end a sleep.
    """

    def __init__(self, socket: Socket, watched: Sequence[int] = ()) -> None:
        self._socket = socket
        self._watched = range(1, len(watched) + 1)
        """The places of the further descriptors in the sleeper, after libzmq's own."""
        descriptors = [int(socket.get(zmq.FD)), *watched]
        self._sleeper = Sleeper([(descriptor, READABLE) for descriptor in descriptors])

    def send(self, batch: FrameBatch, first: int) -> int:
        """Send frames from `first` on; returns the first one that the socket did not take."""
        for index in range(first, batch.count):
            try:
                self._send_frame(batch[index])
            except zmq.Again:
                return index
        return batch.count

    def _send_frame(self, frame: bytes) -> None:
        self._socket.send(frame, zmq.DONTWAIT)

    def receive(self, batch: FrameBatch) -> int:
        """Append the frames that have come; returns the number of frames that were too long and dropped."""
        dropped = 0
        while batch.has_room(batch.largest_frame):
            try:
                frame = self._receive_frame(batch.largest_frame)
            except zmq.Again:
                break
            if len(frame) > batch.largest_frame:
                dropped += 1
            else:
                batch.append(frame)
        return dropped

    def _receive_frame(self, largest: int) -> bytes:  # noqa: ARG002
        """The next frame; the caller drops one that is longer than `largest`."""
        return self._socket.recv(zmq.DONTWAIT)

    def events(self) -> int:
        """The events for which the socket is ready: POLLIN, POLLOUT."""
        return int(self._socket.getsockopt(zmq.EVENTS))

    def sleep(self, event_mask: int, until_ns: int) -> bool:
        """Sleep until `until_ns` of the monotonic clock or an event, unless an event in `event_mask` is there already.

        True if one of the watched descriptors is readable. libzmq's own descriptor is edge-triggered, so the events are
        read first.
        """
        if self.events() & event_mask or not self._sleeper.sleep(until_ns):
            return False
        return any(self._sleeper.may_have_woken(index) for index in self._watched)


class PlainTopicCalls(PlainCalls):
    """Calls for a topic: on the wire a key and its end precede each frame, and subscriptions match them."""

    def __init__(self, socket: Socket, watched: Sequence[int], prefix: bytes) -> None:
        super().__init__(socket, watched)
        self._prefix = prefix

    def _send_frame(self, frame: bytes) -> None:
        super()._send_frame(self._prefix + frame)

    def _receive_frame(self, largest: int) -> bytes:
        end_of_key = self._prefix[-1:]
        _key, _end, frame = super()._receive_frame(largest).partition(end_of_key)
        return frame


class PlainAnswerCalls(PlainCalls):
    """A ROUTER's calls for requests and answers: each answer goes to the sender of its request."""

    def __init__(self, socket: Socket, watched: Sequence[int]) -> None:
        super().__init__(socket, watched)
        self._unanswered: deque[bytes] = deque()

    def _receive_frame(self, largest: int) -> bytes:
        identity, frame = self._socket.recv_multipart(zmq.DONTWAIT)
        if len(frame) <= largest:
            self._unanswered.append(identity)
        return frame

    def _send_frame(self, frame: bytes) -> None:
        try:
            self._socket.send_multipart([self._unanswered[0], frame], zmq.DONTWAIT)
        except zmq.Again:
            raise
        except zmq.ZMQError as error:
            if error.errno != errno.EHOSTUNREACH:  # EHOSTUNREACH: the sender of the request has gone
                raise
        self._unanswered.popleft()


Meet = Callable[[int], None]
"""Takes the descriptor of the connection through which a frame came."""


def _report(meet: Meet, frame: zmq.Frame) -> None:
    """Call `meet` with the connection of a frame; inproc has no connections."""
    with contextlib.suppress(zmq.ZMQError):
        meet(int(frame.get(zmq.SRCFD)))


class FirstCalls(PlainCalls):
    """A listener's calls until it knows the connection of its one peer."""

    def __init__(self, socket: Socket, meet: Meet) -> None:
        super().__init__(socket)
        self._meet = meet

    def _receive_frame(self, largest: int) -> bytes:  # noqa: ARG002
        frame = self._socket.recv(zmq.DONTWAIT, copy=False)
        _report(self._meet, frame)
        return frame.bytes


class FanInCalls(PlainCalls):
    """A ROUTER's calls for fan-in: it receives from every peer, and sends to each peer from which a frame has come."""

    def __init__(self, socket: Socket, watched: Sequence[int], meet: Meet) -> None:
        super().__init__(socket, watched)
        self._meet = meet
        self._peers: set[bytes] = set()

    def _receive_frame(self, largest: int) -> bytes:  # noqa: ARG002
        identity, *parts = self._socket.recv_multipart(zmq.DONTWAIT, copy=False)
        _report(self._meet, identity)
        self._peers.add(identity.bytes)
        return b"".join(part.bytes for part in parts)

    def _send_frame(self, frame: bytes) -> None:
        for identity in self._peers:
            self._socket.send_multipart([identity, frame], zmq.DONTWAIT)
