"""The intake: it receives answers, records them, and keeps foreign frames apart."""

from __future__ import annotations

import time
from collections.abc import Callable

from exchange.messages import End, Hello, read
from exchange.results import HashedStream
from gateway.completion import Completion
from transports.base import Link
from transports.frames import FrameBatch, Longs

ANSWERS_AT_ONCE = 1 << 12
"""The most frames that are received before new orders go. With four times as many, the engine ran out of orders."""


class Intake:
    """Receives answers and records them. The engine's hello and end come once each; other foreign frames are junk."""

    def __init__(self, link: Link, completion: Completion, stream: HashedStream) -> None:
        self._link = link
        self._completion = completion
        self.batch = FrameBatch(ANSWERS_AT_ONCE)
        self.stream = stream
        self.last_answer_ns = 0
        self.junk = 0
        self.hello: Hello | None = None
        self.end: End | None = None
        self.on_received: Callable[[int], None] = lambda now_ns: None
        """Called with the time at which frames came, before they are recorded."""
        self.on_sampled: Callable[[Longs], None] = lambda sampled: None
        """Called with the sampled orders that were answered, rows of `Tables.sampled`."""

    def take(self) -> int:
        """Receive once. Returns how many frames came."""
        self.batch.clear()
        frames = self._link.receive(self.batch)
        if frames:
            self.read(0, time.monotonic_ns())
        return frames

    def read(self, first: int, now_ns: int) -> None:
        """Record the frames from `first` on, which came at `now_ns`."""
        self.on_received(now_ns)
        while first < self.batch.count:
            end, sampled = self._completion.take(self.batch, first, now_ns)
            self.note(first, end, sampled, now_ns)
            if end < self.batch.count:
                self._read_foreign(self.batch[end])
            first = end + 1

    def note(self, first: int, end: int, sampled: Longs, now_ns: int) -> None:
        """Hash answer frames that were recorded, the last of them at `now_ns`, and report the samples among them."""
        if end > first:
            self.last_answer_ns = now_ns
            self.stream.update(self.batch.span(first, end))
        if len(sampled):
            self.on_sampled(sampled)

    def _read_foreign(self, frame: bytes) -> None:
        """Take a frame that is no answer."""
        match read(frame):
            case End() as end if self.end is None:
                self.end = end
            case Hello() as hello if self.hello is None:
                self.hello = hello
            case _:
                if frame:  # an empty frame only shows that the engine is there
                    self.junk += 1
