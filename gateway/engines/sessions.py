"""A gateway's sessions at several engines: their links, what each sent and got, and the orders that wait for room."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from exchange.checksum import StreamChecksum
from exchange.messages import End, Hello, encode
from exchange.results import HashedStream, SessionAtEngine, StreamCounts
from gateway.engines.dividing import append_frames_of
from gateway.offering import BATCH_ORDERS
from transports.base import Link, excuse_of
from transports.frames import FrameBatch, Longs
from transports.together import SleepTogether, sum_of_link_facts

CROWDED_SLEEP_NS = 1_000_000
"""The longest sleep while frames wait for room on a link."""


class EngineSession:
    """A gateway's session at one engine. The gateway's orders for it wait here while the link has no room."""

    def __init__(self, engine: int, link: Link, answers: HashedStream) -> None:
        """`engine` is the engine's number. `answers` takes the bytes of its answers."""
        self.engine = engine
        self.link = link
        self.orders = StreamChecksum()
        """The checksum of the orders that the link took."""
        self.answers = answers
        self.orders_sent = 0
        self.answers_received = 0
        self.was_greeted = False
        """Whether the link took the gateway's hello."""
        self.hello: Hello | None = None
        self.end: End | None = None
        """The engine's end."""
        self.end_sent = False
        self.has_moved = False
        """Whether a frame was sent or received since `EngineLinks.wait` last served the links."""
        self._sent_by_last_look = 0
        """Orders that were sent when `show_life` looked last."""
        self._waiting = FrameBatch(BATCH_ORDERS)
        self._first_waiting = 0

    @property
    def has_waiting(self) -> bool:
        """Whether orders wait for room on the link."""
        return self._first_waiting < self._waiting.count

    def add(self, batch: FrameBatch, first: int, engines: Longs) -> None:
        """Take the frames for this engine among the batch's frames from `first` on; none wait before.

        `engines` has the engine of each frame of the batch.
        """
        self._first_waiting = 0
        self._waiting.count = append_frames_of(
            self.engine,
            engines,
            batch.buffer,
            batch.offsets,
            first,
            batch.count,
            self._waiting.buffer,
            self._waiting.offsets,
        )

    def send_waiting(self) -> None:
        """Send what the link takes of the orders that wait."""
        first = self._first_waiting
        if first == self._waiting.count:
            return
        end = self.link.send(self._waiting, first)
        if end == first:
            return
        self.orders.update(self._waiting.span(first, end))
        self.orders_sent += end - first
        self.has_moved = True
        self._first_waiting = end

    def receive(self, batch: FrameBatch) -> int:
        """Receive once into a batch, which is cleared before. Returns the number of frames."""
        batch.clear()
        frames = self.link.receive(batch)
        if frames:
            self.has_moved = True
        return frames

    def send_frame(self, frame: bytes) -> bool:
        """Send a frame that is no order. Returns False if the link had no room."""
        if self.link.send(FrameBatch.of(frame), 0) == 0:
            return False
        self.has_moved = True
        return True

    def show_life(self) -> None:
        """Send an empty frame if no order was sent since the last call: the engine gives up on a silent gateway."""
        is_idle = self.orders_sent == self._sent_by_last_look
        self._sent_by_last_look = self.orders_sent
        if is_idle and not self.has_waiting and not self.end_sent:
            self.send_frame(b"")

    def send_end(self) -> None:
        """Send the gateway's end once, after every order. If the link has no room, a later call sends it."""
        if self.end_sent or self.has_waiting:
            return
        end = End(sent=self.orders_sent, sent_checksum=self.orders.value, received=0, received_checksum=0)
        self.end_sent = self.send_frame(encode(end))

    def result(self) -> SessionAtEngine:
        """Return counts and checksums of both directions."""
        return SessionAtEngine(
            engine=self.engine,
            orders=StreamCounts(messages=self.orders_sent, checksum=self.orders.hex),
            answers=StreamCounts(messages=self.answers_received, checksum=self.answers.hex),
            engine_said=self.end._asdict() if self.end else None,
        )


class EngineLinks(Link):
    """The links of all sessions as one, but for its frames: each session sends and receives its own."""

    def __init__(self, sessions: Sequence[EngineSession]) -> None:
        self.sessions = sessions
        self.url = " ".join(session.link.url for session in sessions)
        self._together = SleepTogether()
        self._links_are_served = False
        """Whether `wait` has served each link, and no frame was sent or received since."""

    @property
    def _links(self) -> list[Link]:
        return [session.link for session in self.sessions]

    @property
    def junk(self) -> int:  # type: ignore[override]
        """Frames that the links dropped."""
        return sum(link.junk for link in self._links)

    def receive(self, batch: FrameBatch) -> int:
        raise NotImplementedError("each session receives its own frames")

    def send(self, batch: FrameBatch, first: int) -> int:
        raise NotImplementedError("each session sends its own frames")

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        """Serve each link without sleeping. The next call sleeps, if no frame was sent or received in between."""
        have_moved = any(session.has_moved for session in self.sessions)
        if have_moved or not self._links_are_served:
            for session in self.sessions:
                session.has_moved = False
                session.link.wait(0, readable, writable)
            self._links_are_served = True
            return
        if writable:
            until_ns = min(until_ns, time.monotonic_ns() + CROWDED_SLEEP_NS)
        self._together.sleep(self._links, until_ns)
        self._links_are_served = False

    def sockets(self) -> list[dict[str, Any]]:
        sockets = []
        for link in self._links:
            sockets += link.sockets()
        return sockets

    def drain(self, until_ns: int) -> bool:
        have_left = True
        for link in self._links:
            have_left &= link.drain(until_ns)
        return have_left

    def facts(self) -> dict[str, Any]:
        return sum_of_link_facts(self._links)

    def excuse(self) -> str:
        return excuse_of(self._links)

    def close(self, linger_s: float = 1.0) -> None:
        for link in self._links:
            link.close(linger_s)
