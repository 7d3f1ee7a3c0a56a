"""Publishes an engine's market data over a link that fans out, and answers subscribers that ask for a snapshot.

Records gather for a moment, and leave as one frame: a frame for each trade would wake every subscriber for each trade.
A subscriber asks for a snapshot at its start. The reply goes to all, as everything on such a link does: it is one frame
of a hello and the snapshot, or several for many instruments. The last frame is an end, with the number and the checksum
of all records.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from exchange.messages import End, FeedReceipt, SnapshotRequest, encode, read
from exchange.meters import Source
from exchange.session import Terms
from matching_engine.market_data.feed import MarketDataFeed
from transports.base import Link, PeerGone
from transports.frames import FrameBatch

WAIT = "wait"
GATHERING_NS = 250_000
"""The longest time for which records gather."""
LISTEN_EVERY_NS = 50_000_000
"""The time between two looks at what subscribers ask."""
STILL_HERE_NS = 1_000_000_000
"""The longest time between two frames. Without market data the next one is empty."""
LAST_RECEIPTS_NS = 2_000_000_000
"""The longest wait for subscribers that do not confirm the end."""
LAST_WORDS_EVERY_NS = 200_000_000
"""The time between two ends: the first one may be dropped for a slow subscriber."""


class MarketDataPublisher:
    """The engine's end of a market-data link.

    If the link takes no frame, the publisher waits until it does, for the timeout at the most, if the rule for slow
    subscribers is `wait`; else it drops the frame. A link without subscribers takes none either.
    """

    def __init__(
        self, feed: MarketDataFeed, link: Link, terms: Terms, subscribers: int, rule: str, timeout_s: float
    ) -> None:
        """`subscribers`: how many come before the first order. `rule`: one of SLOW_SUBSCRIBER_RULES."""
        self._feed = feed
        self._link = link
        self._terms = terms
        self._subscribers = subscribers
        self._rule = rule
        self._waits = rule == WAIT
        self._timeout_ns = int(timeout_s * 1e9)
        self._frames = FrameBatch()
        self._requests = FrameBatch(64)
        self._joined: set[int] = set()
        """Subscribers that have a snapshot."""
        self._ended: set[int] = set()
        """Subscribers that have confirmed the end."""
        self._is_ending = False
        self._spoke_ns = 0
        """When the last frame went."""
        self._listened_ns = 0
        self._dropped_frames = 0
        self._waited_ns = 0
        self._snapshots = 0
        self._junk = 0

    @property
    def next_ns(self) -> int:
        """When to serve again, in case that records come until then."""
        return time.monotonic_ns() + GATHERING_NS

    def await_subscribers(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Serve until every subscriber has its snapshot, half of the timeout is over, or `is_stopped()` is True.

        Later subscribers may still come.
        """
        until_ns = time.monotonic_ns() + self._timeout_ns // 2
        while len(self._joined) < self._subscribers and time.monotonic_ns() < until_ns and not is_stopped():
            self._sleep(until_ns)
            self._listen()

    def serve(self) -> None:
        """Publish the records that wait, and listen from time to time."""
        now_ns = time.monotonic_ns()
        if not self._feed.is_empty:
            self.publish()
        elif now_ns - self._spoke_ns >= STILL_HERE_NS:
            self._send(b"")
        if now_ns - self._listened_ns >= LISTEN_EVERY_NS:
            self._sleep(0)
            self._listen()

    def publish(self) -> None:
        """Send all records that wait."""
        self._frames.clear()
        self._feed.take(self._frames)
        self._send_frames()

    def finish(self) -> None:
        """Publish the rest and the end, and wait for a while until every subscriber that joined has confirmed it."""
        self.publish()
        end = End(self._feed.messages, self._feed.checksum.value, received=0, received_checksum=0)
        self._is_ending = True
        until_ns = time.monotonic_ns() + (self._timeout_ns if self._waits else LAST_RECEIPTS_NS)
        is_somebody_there = True
        while is_somebody_there and not self._ended >= self._joined and time.monotonic_ns() < until_ns:
            self._send(encode(end))
            next_words_ns = time.monotonic_ns() + LAST_WORDS_EVERY_NS
            while is_somebody_there and not self._ended >= self._joined and time.monotonic_ns() < next_words_ns:
                is_somebody_there = self._sleep(next_words_ns)
                self._listen()

    def close(self) -> None:
        """Release the link."""
        self._link.close()

    @property
    def facts(self) -> dict[str, Any]:
        """The engine's part of a run's market data."""
        return {
            "slow_subscriber": self._rule,
            "depth": self._feed.with_depth,
            "messages": self._feed.messages,
            "checksum": self._feed.checksum.hex,
            "frames_dropped": self._dropped_frames,
            "waited_s": self._waited_ns / 1e9,
            "snapshots": self._snapshots,
            "joined": sorted(self._joined),
            "junk_frames": self._junk + self._link.junk,
            "handshakes_refused": self._link.refused,
        }

    def _send(self, frame: bytes) -> None:
        self._frames.clear()
        self._frames.append(frame)
        self._send_frames()

    def _send_frames(self) -> None:
        """Send the frames in `_frames`; those for which the link has no room are waited for, or dropped."""
        self._spoke_ns = time.monotonic_ns()
        sent = self._try_to_send(0)
        if sent < self._frames.count and self._waits:
            sent = self._send_when_possible(sent)
        self._dropped_frames += self._frames.count - sent

    def _try_to_send(self, first: int) -> int:
        """Send frames from `first` on. Returns the first frame that was not taken."""
        try:
            return self._link.send(self._frames, first)
        except PeerGone:
            return first

    def _send_when_possible(self, first: int) -> int:
        """Wait for room, while a subscriber is there, and send. Returns the first frame that was not taken."""
        began_ns = time.monotonic_ns()
        until_ns = began_ns + self._timeout_ns
        is_somebody_there = True
        while first < self._frames.count and is_somebody_there and time.monotonic_ns() < until_ns:
            is_somebody_there = self._sleep(until_ns, writable=True)
            first = self._try_to_send(first)
        self._waited_ns += time.monotonic_ns() - began_ns
        return first

    def _sleep(self, until_ns: int, writable: bool = False) -> bool:
        """Sleep until a frame has come, or can go if `writable`. Returns False if no subscriber is there any more."""
        try:
            self._link.wait(until_ns, readable=not writable, writable=writable)
        except PeerGone:
            return False
        return True

    def _listen(self) -> None:
        """Take what subscribers have sent."""
        self._listened_ns = time.monotonic_ns()
        self._requests.clear()
        try:
            self._link.receive(self._requests)
        except PeerGone:
            return
        for frame in list(self._requests):
            match read(frame):
                case SnapshotRequest() as request:
                    self._send_snapshot(request.subscriber)
                case FeedReceipt() as receipt if self._is_ending and receipt.sequence == self._feed.messages:
                    self._ended.add(receipt.subscriber)
                case FeedReceipt() as receipt:
                    self._joined.add(receipt.subscriber)
                case _:
                    self._junk += 1

    def _send_snapshot(self, subscriber: int) -> None:
        """Publish the records that wait, then the snapshot after them."""
        self.publish()
        self._snapshots += 1
        hello = encode(self._terms.hello(Source.ENGINE))
        for part in self._feed.snapshot(subscriber):
            self._send(hello + part)
