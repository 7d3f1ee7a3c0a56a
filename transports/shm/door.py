"""The door of a listener: a newcomer sends its segment's descriptor with the first byte of its preamble."""

from __future__ import annotations

import os
import socket

from transports.frames import Bytes
from transports.shm import segment
from transports.tcp.door import Door


class SegmentDoor(Door):
    """A door that keeps the descriptor that a newcomer sends, until the newcomer is admitted or refused."""

    def __init__(self, listener: socket.socket, preamble: bytes) -> None:
        super().__init__(listener, preamble)
        self._descriptors: dict[socket.socket, list[int]] = {}

    def _read(self, candidate: socket.socket, most: int) -> bytes:
        more, descriptors, _, _ = socket.recv_fds(candidate, most, 1)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        self._descriptors.setdefault(candidate, []).extend(descriptors)
        return more

    def take_segment(self, newcomer: socket.socket) -> Bytes:
        """The memory of an admitted newcomer's segment. BadSegment if it sent none, or one that is not safe
        to use; NoSharedMemory if the system does not map it."""
        descriptors = self._descriptors.pop(newcomer, [])
        try:
            if len(descriptors) != 1:
                raise segment.BadSegment(f"it came with {len(descriptors)} descriptors")
            segment.check(descriptors[0])
            return segment.mapped(descriptors[0])
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def refuse(self, candidate: socket.socket) -> None:
        for descriptor in self._descriptors.pop(candidate, []):
            os.close(descriptor)
        super().refuse(candidate)
