"""Links between threads of one process, by two buffers under a lock: for tests, and for a generator's top speed.

Addresses are `memory://name`. A name belongs to its listener until that closes.
"""

from __future__ import annotations

import threading
import time

import numpy as np

from transports.base import Address, CannotListen, Link, PeerGone
from transports.declaration import Transport
from transports.frames import FrameBatch
from transports.guarantees import WITHOUT_SERVER
from transports.waiting import LONGEST_SLEEP_NS

CAPACITY_FRAMES = 1 << 16
CAPACITY_BYTES = 1 << 21


class Pipe:
    """Frames in one direction."""

    def __init__(self) -> None:
        self.batch = FrameBatch(CAPACITY_FRAMES, CAPACITY_BYTES)
        self.writers = 0

    @property
    def is_half_empty(self) -> bool:
        """True if there is enough room to wake a sender."""
        return self.batch.count < CAPACITY_FRAMES // 2 and self.batch.used_bytes < CAPACITY_BYTES // 2

    def take(self, target: FrameBatch) -> int:
        """Move the frames that fit to `target`, up to one that is too long for `target`; return how many."""
        batch = self.batch
        end = _first_without_room(batch, 0, target)
        too_long = np.flatnonzero(np.diff(batch.offsets[: end + 1]) > target.largest_frame)
        if len(too_long):
            end = int(too_long[0])
        _append(batch, 0, end, target)
        batch.drop(end)
        return end

    def drop_too_long(self, largest_frame: int) -> int:
        """Drop frames that are too long from the front; return how many."""
        dropped = 0
        while self.batch.count and int(self.batch.offsets[1]) > largest_frame:
            self.batch.drop(1)
            dropped += 1
        return dropped


def _first_without_room(source: FrameBatch, first: int, target: FrameBatch) -> int:
    """The index of the first frame of `source`, from `first` on, that does not fit into `target`."""
    free_bytes = len(target.buffer) - target.used_bytes
    free_frames = target.capacity_frames - target.count
    ends = source.offsets[: source.count + 1]
    end_by_bytes = int(ends.searchsorted(source.offsets[first] + free_bytes, "right")) - 1
    return min(end_by_bytes, first + free_frames)


def _append(source: FrameBatch, first: int, end: int, target: FrameBatch) -> None:
    """Copy frames first..end-1 to the end of `target`, which has room for them."""
    start = target.used_bytes
    span = source.span(first, end)
    target.buffer[start : start + len(span)] = span
    shifted = source.offsets[first + 1 : end + 1] - source.offsets[first] + start
    target.offsets[target.count + 1 : target.count + 1 + end - first] = shifted
    target.count += end - first


class MemoryLink(Link):
    """One end: reads one pipe, and writes one; a listener with many peers writes one pipe for each."""

    def __init__(self, url: str, token: str, inbound: Pipe, outbound: list[Pipe]) -> None:
        self.url = url
        self.token = token
        self._inbound = inbound
        self._outbound = outbound
        self._closed = False

    def receive(self, batch: FrameBatch) -> int:
        with CHANGED:
            self.junk += self._inbound.drop_too_long(batch.largest_frame)
            taken = self._inbound.take(batch)
            if not taken and self._has_left:
                raise PeerGone(f"the peer at {self.url} closed its end")
            if taken:
                CHANGED.notify_all()
            return taken

    def send(self, batch: FrameBatch, first: int) -> int:
        with CHANGED:
            if not self._outbound:
                return first
            end = min(_first_without_room(batch, first, pipe.batch) for pipe in self._outbound)
            for pipe in self._outbound:
                _append(batch, first, end, pipe.batch)
            CHANGED.notify_all()
            return end

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        def is_ready() -> bool:
            has_frames = self._inbound.batch.count > 0
            has_room = bool(self._outbound) and all(pipe.is_half_empty for pipe in self._outbound)
            return self._has_left or (readable and has_frames) or (writable and has_room)

        left_ns = max(until_ns - time.monotonic_ns(), 0)
        with CHANGED:
            CHANGED.wait_for(is_ready, min(left_ns, LONGEST_SLEEP_NS) / 1e9)
            if self._has_left and not readable:
                raise PeerGone(f"the peer at {self.url} closed its end")

    @property
    def _has_left(self) -> bool:
        """True if there was a peer, and none is here any more."""
        return self._inbound.writers == 0 and bool(self._outbound)

    def close(self, linger_s: float = 1.0) -> None:  # noqa: ARG002
        with CHANGED:
            if not self._closed:
                self._closed = True
                for pipe in self._outbound:
                    pipe.writers -= 1
                if LISTENERS.get(self.url) is self:
                    del LISTENERS[self.url]
                CHANGED.notify_all()

    def admit(self, address: Address) -> MemoryLink:
        """Join a connector to this listener."""
        if self._outbound and not address.fan_in:
            self.refused += 1
            raise PeerGone(f"{self.url} has its one peer already")
        outbound = Pipe()
        outbound.writers = 1
        self._inbound.writers += 1
        self._outbound.append(outbound)
        return MemoryLink(self.url, self.token, outbound, [self._inbound])


CHANGED = threading.Condition()
"""The lock of all pipes; it is notified of every change."""
LISTENERS: dict[str, MemoryLink] = {}


def listen(address: Address) -> Link:
    with CHANGED:
        if address.url in LISTENERS:
            raise CannotListen(f"{address.url} is taken: choose another name")
        link = LISTENERS[address.url] = MemoryLink(address.url, address.token, Pipe(), [])
        CHANGED.notify_all()
        return link


def connect(address: Address, until_ns: int) -> Link:
    with CHANGED:
        CHANGED.wait_for(lambda: address.url in LISTENERS, max(until_ns - time.monotonic_ns(), 0) / 1e9)
        listener = LISTENERS.get(address.url)
        if listener is None:
            raise PeerGone(f"nobody listens on {address.url}")
        if listener.token != address.token:
            listener.refused += 1
            raise PeerGone(f"{address.url} refused this run's id")
        link = listener.admit(address)
        CHANGED.notify_all()
        return link


TRANSPORT = Transport(
    colour="purple",
    places={"memory": "name"},
    listen=listen,
    connect=connect,
    guarantees={"": WITHOUT_SERVER},
    about={"memory": "threads of one process, no system call; for tests and for the generator's ceiling"},
    remarks={"memory": "one process"},
    one_process=frozenset({"memory"}),
)
