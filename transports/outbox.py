"""Frames that wait for room on a link, so that none is lost and their sender does not block."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import xxhash

from transports.base import Link, PeerGone, is_silent
from transports.frames import FrameBatch

LAST_WORDS_NS = 1_000_000_000
"""The time that the peer has to close after a request to stop."""


class Outbox:
    """Posts frames to a link in order.

    `posted` and `checksum` cover the counted frames. The checksum is the sum of their XXH64 modulo 2^64, so it does not
    depend on their order.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._batch = FrameBatch(1024)
        self._first = 0
        self._closing: bytes | None = None
        self.posted = 0
        self.checksum = 0

    @property
    def pending(self) -> bool:
        return self._first < self._batch.count

    @property
    def unsent(self) -> list[bytes]:
        return list(self._batch)[self._first :]

    def post(self, frame: bytes, counted: bool = True) -> None:
        """Take a frame; `flush` sends it."""
        self._batch.append(frame)
        if counted:
            self.posted += 1
            self.checksum = (self.checksum + frame_checksum(frame)) % 2**64

    def flush(self) -> bool:
        """Send as many frames as the link takes. True if none is left."""
        if self.pending:
            self._first = self._link.send(self._batch, self._first)
        if not self.pending:
            self._batch.clear()
            self._first = 0
        return not self.pending

    def settle(self, patience_ns: int, stopped: Callable[[], bool] = lambda: False) -> bytes | None:
        """Send all frames, then wait for the peer's closing frame, and return it.

        None if no frame came for `patience_ns`. An empty frame extends the time: the peer itself has to wait. Once
        `stopped()` is True, LAST_WORDS_NS are left, and no frame extends them.
        """
        until_ns = time.monotonic_ns() + patience_ns
        is_stopping = False
        with contextlib.suppress(PeerGone):
            while self._closing is None:
                if not is_stopping and stopped():
                    is_stopping = True
                    until_ns = min(until_ns, time.monotonic_ns() + LAST_WORDS_NS)
                sent = self.flush()
                if self._take():
                    if not is_stopping:
                        until_ns = time.monotonic_ns() + patience_ns
                elif time.monotonic_ns() < until_ns:
                    self._link.wait(until_ns, writable=not sent)
                elif is_stopping or is_silent(self._link, self._take):  # the second receives once more
                    break
        return self._closing

    def _take(self) -> int:
        """Receive once, and note the peer's closing frame, which is not empty. Returns the number of frames."""
        frames = FrameBatch(16)
        self._link.receive(frames)
        for frame in frames:
            if frame:
                self._closing = frame
                break
        return frames.count


def frame_checksum(frame: bytes) -> int:
    """The value that one frame adds to `Outbox.checksum`."""
    return int(xxhash.xxh64_intdigest(frame))
