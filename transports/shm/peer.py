"""One peer: the two rings that this end shares with it, and the socket by which the two wake each other."""

from __future__ import annotations

import socket

import numpy as np

from transports.frames import Bytes, FrameBatch
from transports.lending import NOTICE, pollfd
from transports.shm import ring
from transports.shm.segment import CONNECTORS_RING, LISTENERS_RING


class Peer:
    """The end of the rings that belongs to this process."""

    def __init__(self, sock: socket.socket, memory: Bytes, listens: bool, spins: bool) -> None:
        sock.setblocking(False)
        self._socket = sock
        self.fd = sock.fileno()
        self.memory = memory
        self.numbers = np.zeros(ring.DESCRIPTORS + ring.MOST_DESCRIPTORS, np.int64)
        """State that Python and compiled code share; see the places in transports/shm/ring.py."""
        outbound, inbound = (LISTENERS_RING, CONNECTORS_RING) if listens else (CONNECTORS_RING, LISTENERS_RING)
        self.numbers[ring.SOCKET] = self.fd
        self.numbers[ring.OUT_CONTROL] = outbound.control
        self.numbers[ring.OUT_DATA] = outbound.data
        self.numbers[ring.IN_CONTROL] = inbound.control
        self.numbers[ring.IN_DATA] = inbound.data
        self.numbers[ring.SPINS] = spins
        self.watch([])

    def watch(self, others: list[int]) -> None:
        """Let a compiled sleep end at news of this peer's socket, and of as many `others` as it has places for."""
        watched = [self.fd, *others][: ring.MOST_DESCRIPTORS]
        self.numbers[ring.POLLED] = len(watched)
        places = slice(ring.DESCRIPTORS, ring.DESCRIPTORS + len(watched))
        self.numbers[places] = [pollfd(descriptor) for descriptor in watched]

    def receive(self, batch: FrameBatch) -> None:
        """Append the frames that have come."""
        count = ring.read_frames(
            self.numbers, self.memory, batch.buffer, batch.offsets, batch.count, batch.largest_frame
        )
        batch.count = int(count)

    def send(self, batch: FrameBatch, first: int, end: int) -> int:
        """Write frames first..end-1 while there is room; returns the first one that was not written."""
        return int(ring.write_frames(self.numbers, self.memory, batch.buffer, batch.offsets, first, end))

    def first_without_room(self, batch: FrameBatch, first: int) -> int:
        """The first frame, from `first` on, for which there is no room."""
        return int(ring.frames_with_room(self.numbers, self.memory, batch.offsets, first, batch.count))

    def prepare_sleep(self, readable: bool, writable: bool) -> bool:
        """Ask the peer to wake this end. Returns False if this end must not sleep, since what it waits for is there."""
        return bool(ring.prepare_sleep(self.numbers, self.memory, readable, writable))

    def end_sleep(self) -> None:
        """Ask the peer for no more wakes, and notice whether it has left."""
        ring.end_sleep(self.numbers, self.memory)

    def spin(self, until_ns: int, readable: bool, writable: bool) -> None:
        """Stay awake until a frame has come, there is room, there is other news, or `until_ns`."""
        ring.spin(self.numbers, self.memory, until_ns, readable, writable)

    def take_too_long(self) -> int:
        """The number of frames that were dropped as too long since the last call."""
        dropped = int(self.numbers[ring.TOO_LONG])
        self.numbers[ring.TOO_LONG] = 0
        return dropped

    def clear_notice(self) -> None:
        """Forget the notice of the compiled calls, once Python has dealt with it."""
        self.numbers[NOTICE] = 0

    @property
    def is_broken(self) -> bool:
        """True if the peer wrote a place or a length that cannot be."""
        return bool(self.numbers[ring.BROKEN])

    @property
    def has_left(self) -> bool:
        """True if the peer can write no more; frames that it wrote may still be in the ring."""
        return self.is_broken or bool(self.numbers[ring.HUNG_UP])

    def close(self) -> None:
        """Close the socket, by which the peer notices. Frames in the ring stay for the peer."""
        self._socket.close()
