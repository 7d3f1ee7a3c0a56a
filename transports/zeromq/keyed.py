"""Frames of a topic: on the wire the key and KEY_END stand before each, where subscriptions look; nobody gets them."""

from __future__ import annotations

import zmq

from transports.topics import KEY_END
from transports.zeromq.calls import PlainCalls


class PlainKeyedCalls(PlainCalls):
    """One pyzmq call a message."""

    def __init__(self, socket: zmq.Socket[bytes], watched: list[int], prefix: bytes) -> None:
        super().__init__(socket, watched)
        self._prefix = prefix

    def _send_frame(self, frame: bytes) -> None:
        super()._send_frame(self._prefix + frame)

    def _receive_frame(self) -> bytes:
        return super()._receive_frame().partition(KEY_END)[2]
