"""Receives answers: counts and hashes them, pairs them with their orders, and catches the engine's hello and end."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from exchange.checksum import Stream
from exchange.messages import End, Hello, read
from gateway.completion import Completion
from transports.base import Link
from transports.frames import FrameBatch


class Intake:
    """Takes what the link has. The engine's `hello` and `end` come once each; any other foreign frame is junk."""

    def __init__(self, link: Link, completion: Completion, stream: Stream) -> None:
        self._link, self._completion = link, completion
        self._batch = FrameBatch(1 << 14)
        self.stream = stream
        self.last_answer_ns = 0
        self.junk = 0
        self.hello: Hello | None = None
        self.end: End | None = None
        self.on_received: Callable[[int], None] = lambda now_ns: None
        self.on_sampled: Callable[[npt.NDArray[np.int64], int], None] = lambda order_ids, answered_ns: None

    def take(self) -> int:
        """Receive once. Returns how many frames came."""
        self._batch.clear()
        frames = self._link.receive(self._batch)
        if frames:
            now_ns = time.monotonic_ns()
            self.on_received(now_ns)
            self._read(now_ns)
        return frames

    def _read(self, now_ns: int) -> None:
        first, batch = 0, self._batch
        while first < batch.count:
            end, sampled = self._completion.take(batch, first, now_ns)
            if end > first:
                self.last_answer_ns = now_ns
                self.stream.update(batch.span(first, end))
            if len(sampled):
                self.on_sampled(sampled, now_ns)
            if end < batch.count:
                self._read_foreign(batch[end])
            first = end + 1

    def _read_foreign(self, frame: bytes) -> None:
        match read(frame):
            case End() as end if self.end is None:
                self.end = end
            case Hello() as hello if self.hello is None:
                self.hello = hello
            case _:
                self.junk += 1
