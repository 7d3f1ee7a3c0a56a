"""A subscriber's loop: join with a snapshot, then receive market data to its end, and count what is missing."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from exchange.checksum import StreamChecksum
from exchange.measurements import BUCKETS, LogBuckets
from exchange.messages import (
    ASK,
    BID,
    DepthLevel,
    End,
    FeedReceipt,
    Hello,
    MalformedMessage,
    MarketQuote,
    Message,
    Snapshot,
    SnapshotRequest,
    decode_all,
    encode,
)
from exchange.results import ResourceUsage, SubscriberResult
from exchange.session import Terms
from gateway.market_data import kernels
from transports.base import Link, PeerGone, is_silent
from transports.frames import Bytes, FrameBatch

ASK_EVERY_NS = 100_000_000
"""The time between two requests for a snapshot."""
BETWEEN_FRAMES_S = 2.0
"""The longest time between two frames of a live engine: it sends one every second."""
LARGEST_OFFSET_NS = 10_000_000
"""Clocks of one host agree within this time: the difference of wall and monotonic clock is that of its boot."""
PLACES = 10
"""Price levels of each side in a depth."""


class Subscriber:
    """Receives the market data of one engine.

    `run` returns after the engine's end. If `asks_after_gaps`, the subscriber asks for a new snapshot after a gap.
    """

    def __init__(
        self,
        link: Link,
        terms: Terms,
        number: int,
        timeout_s: float,
        asks_after_gaps: bool = False,
        instruments: int = 1,
    ) -> None:
        self.link = link
        self._terms = terms
        self._number = number
        self._timeout_ns = int(timeout_s * 1e9)
        self._asks_after_gaps = asks_after_gaps
        self._frames = FrameBatch(1 << 12, 1 << 21)
        self._numbers = np.zeros(kernels.NUMBERS, np.int64)
        self._buckets = np.zeros(BUCKETS, np.int64)
        self._checksum = StreamChecksum()
        self._instruments = instruments
        self.best = np.zeros((instruments, 2), np.int64)
        """Bid and ask of each instrument, as the last quote or snapshot has them."""
        self.depth = np.zeros((instruments, 2, PLACES, 2), np.int64)
        """Price and volume of the best levels of asks, then bids, of each instrument."""
        self._next_in_snapshot = 0
        """The instrument with which the next part of a snapshot begins."""
        self._before = 0
        self._snapshots = 0
        self._gaps_at_snapshot = 0
        """The gaps before the last snapshot, which it has filled."""
        self._asked_ns = 0
        self._heard_ns = 0
        self._is_same_host = False
        self._engine_end: End | None = None
        self._stopped: str | None = None
        self._junk = 0
        self._usage_at_start = ResourceUsage.now()

    def stop(self, reason: str) -> None:
        """End early. What was received until now is in the result."""
        self._stopped = self._stopped or reason

    def warm(self) -> None:
        """Load the kernels."""
        record = np.frombuffer(encode(MarketQuote(0, 0, 0, 0, 0)), np.uint8).copy()
        scratch = Subscriber(self.link, self._terms, self._number, 1.0)
        scratch._snapshots = 1  # only a subscriber that has joined takes records
        scratch._take_frame(record, 0, len(record), 0)

    def close(self) -> None:
        """Release the link."""
        self.link.close()

    def run(self) -> SubscriberResult:
        """Receive until the engine's end, its silence, or `stop`. Disagreement if the engine has other terms."""
        self.start()
        while not self.is_over:
            if not self.take_turn() and not self.is_over:
                self.wait(time.monotonic_ns() + ASK_EVERY_NS)
        return self.result()

    def start(self) -> None:
        """Start the clock: usage and silence count from now on."""
        self._usage_at_start = ResourceUsage.now()
        self._heard_ns = time.monotonic_ns()

    @property
    def is_over(self) -> bool:
        """Whether the engine's end has come, or the subscriber ends early."""
        return self._engine_end is not None or self._stopped is not None

    def take_turn(self) -> int:
        """Ask for a snapshot if one is due, and receive once. Returns how many frames came.

        The subscriber ends early if the engine is gone, or was silent for too long.
        """
        try:
            self._ask_if_due()
            frames = self._receive()
            is_late = time.monotonic_ns() - self._heard_ns > self._patience_ns
            if not frames and is_late and is_silent(self.link, self._receive):
                self._stopped = self._stopped or self._silence
        except PeerGone as error:
            self._stopped = self._stopped or str(error)
            return 0
        return frames

    def wait(self, until_ns: int) -> None:
        """Let the link do its own work, and sleep until a frame has come, or `until_ns` of the monotonic clock.

        With `until_ns` 0 it does not sleep. The subscriber ends early if the engine is gone.
        """
        try:
            self.link.wait(until_ns)
        except PeerGone as error:
            self._stopped = self._stopped or str(error)

    @property
    def _has_joined(self) -> bool:
        return self._snapshots > 0

    @property
    def _patience_ns(self) -> int:
        return self._timeout_ns + int(BETWEEN_FRAMES_S * 1e9)

    @property
    def _silence(self) -> str:
        patience_s = self._patience_ns / 1e9
        if self._has_joined:
            return f"no market data came for {patience_s:g} s{self.link.excuse()}"
        return f"no snapshot came from {self.link.url} within {patience_s:g} s{self.link.excuse()}"

    def _ask_if_due(self) -> None:
        """Ask for a snapshot if one is lacking, and the last request is not recent."""
        has_unfilled_gap = self._asks_after_gaps and self._numbers[kernels.GAPS] > self._gaps_at_snapshot
        if self._has_joined and not has_unfilled_gap:
            return
        now_ns = time.monotonic_ns()
        if now_ns - self._asked_ns >= ASK_EVERY_NS:
            self._asked_ns = now_ns
            self._send(SnapshotRequest(self._number))

    def _receive(self) -> int:
        """Receive once, and take the frames. Returns their number."""
        self._frames.clear()
        count = self.link.receive(self._frames)
        if count:
            self._heard_ns = time.monotonic_ns()
        data = self._frames.buffer
        offsets = self._frames.offsets.tolist()
        for frame in range(self._frames.count):
            self._take_frame(data, offsets[frame], offsets[frame + 1], self._heard_ns)
        return count

    def _take_frame(self, data: Bytes, begin: int, end: int, now_ns: int) -> None:
        """Take the frame in the bytes from `begin` to `end`, which had come at `now_ns`."""
        if kernels.is_market_data(data, begin, end):
            if self._has_joined:
                kernels.take_records(
                    data, begin, end, now_ns, self._numbers, self._buckets, self._checksum.state, self.best, self.depth
                )
        elif begin < end:
            self._take_messages(data[begin:end].tobytes())

    def _take_messages(self, frame: bytes) -> None:
        """Take a frame that is no market data: a hello with a snapshot, or the end."""
        try:
            messages = list(decode_all(frame))
        except MalformedMessage:
            self._junk += 1
            return
        if not all(_has_possible_fields(message) for message in messages):
            self._junk += 1
            return
        match messages:
            case [Hello() as hello, Snapshot() as snapshot, *rest]:
                self._take_snapshot(hello, snapshot, [snapshot, *rest])
            case [End() as end]:
                self._take_end(end)
            case _:
                self._junk += 1

    def _take_snapshot(self, hello: Hello, first: Snapshot, records: Sequence[Message]) -> None:
        """Take a part of a snapshot, of these records; the last part joins, or fills a gap.

        A snapshot for another subscriber fills a gap as well. Parts follow each other: if one is missing, the next
        snapshot counts.
        """
        self._terms.agree(hello, addresses="--market-data")
        if not self._has_joined and first.subscriber != self._number:
            return
        if first.instrument not in (0, self._next_in_snapshot):
            return
        last = first
        for record in records:
            match record:
                case Snapshot() as snapshot if snapshot.instrument < self._instruments:
                    last = snapshot
                    self.best[snapshot.instrument] = snapshot.bid, snapshot.ask
                    self.depth[snapshot.instrument] = 0
                case DepthLevel() as level if level.instrument < self._instruments:
                    self.depth[level.instrument, level.side - 1, level.place] = level.price, level.volume
        self._next_in_snapshot = last.instrument + 1
        if self._next_in_snapshot == self._instruments:
            self._next_in_snapshot = 0
            self._take_whole_snapshot(hello, first.sequence)

    def _take_whole_snapshot(self, hello: Hello, sequence: int) -> None:
        """Go on after the market data up to this number."""
        if not self._has_joined:
            our_offset_ns = time.time_ns() - time.monotonic_ns()
            self._is_same_host = abs(hello.wall_ns - hello.monotonic_ns - our_offset_ns) < LARGEST_OFFSET_NS
            self._before = sequence
            self._send(FeedReceipt(self._number, sequence))
        else:
            self._count_missing(sequence)
        self._snapshots += 1
        self._gaps_at_snapshot = int(self._numbers[kernels.GAPS])
        self._numbers[kernels.EXPECTED] = sequence + 1

    def _count_missing(self, last: int) -> None:
        """Count the messages up to the number `last` that have not come as a gap."""
        missing = last + 1 - int(self._numbers[kernels.EXPECTED])
        if missing > 0:
            self._numbers[kernels.GAPS] += 1
            self._numbers[kernels.MISSED] += missing

    def _take_end(self, end: End) -> None:
        """Note the end, and confirm it. Later ends are the same."""
        if self._engine_end is None and self._has_joined:
            self._engine_end = end
            self._count_missing(end.sent)
            self._send(FeedReceipt(self._number, end.sent))
            self.link.drain(time.monotonic_ns() + self._timeout_ns)

    def _send(self, message: Message) -> None:
        """Send a message. A request that the link does not take is sent again later."""
        self.link.send(FrameBatch.of(encode(message)), 0)

    def result(self) -> SubscriberResult:
        """Return what was received."""
        numbers = self._numbers.tolist()
        delivery = None
        if self._is_same_host:
            buckets = LogBuckets(
                self._buckets, numbers[kernels.SUM_NS], numbers[kernels.MIN_NS], numbers[kernels.MAX_NS]
            )
            delivery = buckets.as_lists()
        return SubscriberResult(
            messages=numbers[kernels.MESSAGES],
            trades=numbers[kernels.TRADES],
            quotes=numbers[kernels.QUOTES],
            levels=numbers[kernels.LEVELS],
            gaps=numbers[kernels.GAPS],
            missed=numbers[kernels.MISSED],
            before=self._before,
            repeated=numbers[kernels.REPEATED],
            snapshots=self._snapshots,
            checksum=self._checksum.hex,
            engine_said=None if self._engine_end is None else self._engine_end._asdict(),
            delivery=delivery,
            junk_frames=self._junk + self.link.junk,
            usage=ResourceUsage.now().since(self._usage_at_start),
            sockets=self.link.sockets(),
            link=self.link.facts(),
            stopped=self._stopped,
        )


def _has_possible_fields(message: Message) -> bool:
    """Return False if a field of a message from the engine has a value that no engine sends."""
    match message:
        case Snapshot():
            return message.sequence <= kernels.HIGHEST_SEQUENCE
        case DepthLevel():
            return message.side in (ASK, BID) and message.place < PLACES
        case End():
            return message.sent <= kernels.HIGHEST_SEQUENCE
    return True
