"""A ROUTER's calls for requests and their answers: each answer goes to who sent the request that it stands for."""

from __future__ import annotations

import errno
from collections import deque

import zmq

from transports.frames import FrameBatch
from transports.zeromq.calls import PlainCalls


class PlainAskedCalls(PlainCalls):
    """pyzmq's, two parts a message."""

    def __init__(self, socket: zmq.Socket[bytes], watched: list[int]) -> None:
        super().__init__(socket, watched)
        self._unanswered: deque[bytes] = deque()

    def receive(self, batch: FrameBatch) -> int:
        dropped = 0
        while batch.count < batch.capacity_frames and batch.used_bytes + batch.largest_frame <= len(batch.buffer):
            try:
                identity, frame = self._socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                break
            if len(frame) > batch.largest_frame:
                dropped += 1
            else:
                self._unanswered.append(identity)
                batch.append(frame)
        return dropped

    def _send_frame(self, frame: bytes) -> None:
        try:
            self._socket.send_multipart([self._unanswered[0], frame], zmq.DONTWAIT)
        except zmq.Again:
            raise
        except zmq.ZMQError as error:
            if error.errno != errno.EHOSTUNREACH:  # who asked has gone
                raise
        self._unanswered.popleft()
