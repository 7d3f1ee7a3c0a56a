"""The market data of an engine, numbered and hashed, until a publisher takes it away in frames."""

from __future__ import annotations

import numpy as np

from exchange.checksum import StreamChecksum
from exchange.messages import ASK, BID, MARKET_DATA_TYPES, DepthLevel, Order, Snapshot, encode, sizes_by_code
from matching_engine.arena import FEED
from matching_engine.engine import Handled, MatchingEngine
from matching_engine.market_data.kernels import (
    CAPACITY,
    DEPTH,
    FEED_BYTES,
    HAS_CHANGED,
    INSTRUMENT,
    LARGEST_RECORD,
    MEMORY_BYTES,
    MOST_BYTES_OF_ORDER,
    READ_NS,
    RECORDS,
    SEQUENCE,
    USED,
    depth_reader,
    publish_depth,
    publishing_handler,
)
from matching_engine.order_book import IS_EXACT, OrderBook
from transports.frames import Bytes, FrameBatch, Longs, untouched

LARGEST_FRAME_BYTES = 1 << 16
_SIZES = sizes_by_code(MARKET_DATA_TYPES)
_WORD = 8
MOST_BYTES_OF_DEPTH = 2 * DEPTH * LARGEST_RECORD


class MarketDataFeed:
    """Records that wait for a publisher, and count and checksum of all records so far."""

    def __init__(self, book: OrderBook, with_depth: bool, instrument: int = 0) -> None:
        self._memory: Bytes = untouched(MEMORY_BYTES)
        self._words: Longs = self._memory[:RECORDS].view(np.int64)
        self._words[CAPACITY // _WORD] = FEED_BYTES
        self._words[INSTRUMENT // _WORD] = instrument
        self._book = book
        self._instrument = instrument
        self.with_depth = with_depth
        self._depth = np.zeros((2, DEPTH, 2), np.int64)
        self._instruments = 1 if book.instruments is None else book.instruments
        self._published_depths = np.zeros((self._instruments if with_depth else 1, 2, DEPTH, 2), np.int64)
        """By instrument; `instrument` has row 0 if there is one book."""
        self._depth_read_ns = 0
        """When the engine had read the last orders that the published depth has."""
        self._checksum = StreamChecksum()
        book.state[FEED] = self._memory.ctypes.data

    @property
    def messages(self) -> int:
        """The number of all records so far, which is that of the last record."""
        return int(self._words[SEQUENCE // _WORD])

    @property
    def checksum(self) -> StreamChecksum:
        """The checksum of all records that `take` returned."""
        return self._checksum

    @property
    def is_empty(self) -> bool:
        """True if no record waits, and no order has come that may have changed the depth."""
        return self._words[USED // _WORD] == 0 and not self._may_have_other_depth

    @property
    def read_ns(self) -> int:
        """When the engine had read its newest orders (monotonic clock)."""
        return int(self._words[READ_NS // _WORD])

    @property
    def may_be_full(self) -> bool:
        """True if the records of a large order may not fit."""
        return int(self._words[USED // _WORD]) > FEED_BYTES - MOST_BYTES_OF_ORDER

    @property
    def _may_have_other_depth(self) -> bool:
        """True with depth, if orders have come since it was published."""
        return self.with_depth and self.read_ns != self._depth_read_ns

    def begin_with_book(self) -> None:
        """Take the depth of a book that has orders already as published: the first snapshot has it."""
        if not self.with_depth:
            return
        read_depth = depth_reader(several=self._book.several)
        for instrument in range(self._instruments):
            read_depth(self._book.arena, self._book.index, instrument, self._published_depths[instrument])

    def take(self, frames: FrameBatch) -> None:
        """Move all records into frames, none of which divides a record. The batch is empty before."""
        if self._may_have_other_depth:
            self._publish_depths()
        end = RECORDS + int(self._words[USED // _WORD])
        self._checksum.update(self._memory[RECORDS:end])
        at = RECORDS
        while at < end:
            cut = end if end - at <= LARGEST_FRAME_BYTES else self._cut(at)
            frames.append(self._memory[at:cut].tobytes())
            at = cut
        self._words[USED // _WORD] = 0

    def _publish_depths(self) -> None:
        """Write the levels that have changed. What has no room is left for the next time."""
        if self._book.instruments is None:
            self._publish_depth_of(0)
        else:
            has_changed = self._memory[HAS_CHANGED:MEMORY_BYTES]
            for instrument in np.flatnonzero(has_changed).tolist():
                if int(self._words[USED // _WORD]) > FEED_BYTES - MOST_BYTES_OF_DEPTH:
                    return
                self._words[INSTRUMENT // _WORD] = instrument
                self._publish_depth_of(instrument)
                has_changed[instrument] = 0
        self._depth_read_ns = self.read_ns

    def _publish_depth_of(self, instrument: int) -> None:
        """Write the levels of the feed's instrument that have changed; `instrument` is its book."""
        read_depth = depth_reader(several=self._book.several)
        read_depth(self._book.arena, self._book.index, instrument, self._depth)
        publish_depth(self._memory, self._published_depths[instrument], self._depth)

    def _cut(self, begin: int) -> int:
        """Return the end of the longest frame of whole records that begins at this byte."""
        cut = begin
        while cut - begin + _SIZES[self._memory[cut]] <= LARGEST_FRAME_BYTES:
            cut += int(_SIZES[self._memory[cut]])
        return cut

    def snapshot(self, subscriber: int) -> list[bytes]:
        """Return a snapshot after the last record, for a subscriber, in parts that fit into a frame each.

        For each instrument it has the best prices, then the published levels if any. The feed is empty: records that
        wait would repeat what the snapshot has.
        """
        parts: list[bytes] = []
        part = b""
        for book in range(self._instruments):
            records = self._snapshot_of(book, subscriber)
            if len(part) + len(records) > LARGEST_FRAME_BYTES:
                parts.append(part)
                part = b""
            part += records
        parts.append(part)
        return parts

    def _snapshot_of(self, book: int, subscriber: int) -> bytes:
        """Return the records of one book in a snapshot."""
        instrument = self._instrument if self._book.instruments is None else book
        best = self._book.best_prices(book)
        records = [encode(Snapshot(instrument, self.messages, subscriber, best.bid, best.ask))]
        if self.with_depth:
            for side in (ASK, BID):
                for place in range(DEPTH):
                    price, volume = self._published_depths[book, side - 1, place].tolist()
                    if price:
                        level = DepthLevel(instrument, self.messages, self.read_ns, side, place, price, volume)
                        records.append(encode(level))
        return b"".join(records)


WARMING_ORDER = FrameBatch.of(encode(Order(id=1, side=ASK, price=1, volume=1)))


class PublishingEngine(MatchingEngine):
    """A matching engine whose kernel also writes market data into a feed, which a publisher empties."""

    def __init__(self, book: OrderBook, with_depth: bool = False, is_shared: bool = False, packing: int = 1) -> None:
        super().__init__(book, packing, is_shared)
        self.feed = MarketDataFeed(book, with_depth)
        self.kernel = publishing_handler(
            exact=IS_EXACT[book.policy],
            keeps_ids=book.with_ids,
            packed=packing > 1,
            shared=is_shared,
            several=book.several,
        )
        self.empty_feed = self._forget_records
        """Called if the feed may be full: takes its records away."""

    def _forget_records(self) -> None:
        self.feed.take(FrameBatch())

    def renewed(self) -> PublishingEngine:
        return PublishingEngine(self.book.renewed(), self.feed.with_depth, self.is_shared, self.packing)

    def warm(self) -> None:
        """Load the kernels by an order in a book of its own."""
        book = self.book.tiny()
        scratch = PublishingEngine(book, with_depth=True, is_shared=self.is_shared, packing=self.packing)
        scratch.handle(WARMING_ORDER, FrameBatch())
        scratch.feed.take(FrameBatch())

    def handle(self, orders: FrameBatch, answers: FrameBatch, first: int = 0, at: int = 0, byte: int = 0) -> Handled:
        if self.feed.may_be_full:
            self.empty_feed()
        return super().handle(orders, answers, first, at, byte)

    def make_room(self, answers: FrameBatch, byte: int) -> None:
        """Empty the feed if it is full; otherwise the answers lack room."""
        if self.feed.may_be_full:
            self.empty_feed()
        else:
            super().make_room(answers, byte)
