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
    INSTRUMENT,
    MOST_BYTES_OF_ORDER,
    READ_NS,
    RECORDS,
    SEQUENCE,
    USED,
    publish_depth,
    publishing_handler,
    read_depth,
)
from matching_engine.order_book import IS_EXACT, OrderBook
from transports.frames import Bytes, FrameBatch, Longs, untouched

FEED_BYTES = 2 * MOST_BYTES_OF_ORDER
"""Bytes of records that a feed holds. It counts as full once the records of a large order may not fit."""
LARGEST_FRAME_BYTES = 1 << 16
_SIZES = sizes_by_code(MARKET_DATA_TYPES)
_WORD = 8


class MarketDataFeed:
    """Records that wait for a publisher, and count and checksum of all records so far."""

    def __init__(self, book: OrderBook, with_depth: bool, instrument: int = 0) -> None:
        self._memory: Bytes = untouched(RECORDS + FEED_BYTES)
        self._words: Longs = self._memory[:RECORDS].view(np.int64)
        self._words[CAPACITY // _WORD] = FEED_BYTES
        self._words[INSTRUMENT // _WORD] = instrument
        self._book = book
        self._instrument = instrument
        self.with_depth = with_depth
        self._depth = np.zeros((2, DEPTH, 2), np.int64)
        self._published_depth = np.zeros((2, DEPTH, 2), np.int64)
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

    def take(self, frames: FrameBatch) -> None:
        """Move all records into frames, none of which divides a record. The batch is empty before."""
        if self._may_have_other_depth:
            read_depth(self._book.arena, self._book.index, self._depth)
            publish_depth(self._memory, self._published_depth, self._depth)
            self._depth_read_ns = self.read_ns
        end = RECORDS + int(self._words[USED // _WORD])
        self._checksum.update(self._memory[RECORDS:end])
        at = RECORDS
        while at < end:
            cut = end if end - at <= LARGEST_FRAME_BYTES else self._cut(at)
            frames.append(self._memory[at:cut].tobytes())
            at = cut
        self._words[USED // _WORD] = 0

    def _cut(self, begin: int) -> int:
        """Return the end of the longest frame of whole records that begins at this byte."""
        cut = begin
        while cut - begin + _SIZES[self._memory[cut]] <= LARGEST_FRAME_BYTES:
            cut += int(_SIZES[self._memory[cut]])
        return cut

    def snapshot(self, subscriber: int) -> bytes:
        """Return a snapshot after the last record, for a subscriber: best prices, then the published levels if any.

        The feed is empty: records that wait would repeat what the snapshot has.
        """
        book = self._book
        records = [encode(Snapshot(self._instrument, self.messages, subscriber, book.best_bid, book.best_ask))]
        if self.with_depth:
            for side in (ASK, BID):
                for place in range(DEPTH):
                    price, volume = self._published_depth[side - 1, place].tolist()
                    if price:
                        level = DepthLevel(self._instrument, self.messages, self.read_ns, side, place, price, volume)
                        records.append(encode(level))
        return b"".join(records)


WARMING_ORDER = FrameBatch.of(encode(Order(id=1, side=ASK, price=1, volume=1)))


class PublishingEngine(MatchingEngine):
    """A matching engine whose kernel also writes market data into a feed, which a publisher empties.

    Its frames have one order each: with several, the answers would not tell where an order's trades begin.
    """

    def __init__(self, book: OrderBook, with_depth: bool = False, is_shared: bool = False) -> None:
        super().__init__(book, is_shared=is_shared)
        self.feed = MarketDataFeed(book, with_depth)
        self.kernel = publishing_handler(exact=IS_EXACT[book.policy], keeps_ids=book.with_ids, shared=is_shared)
        self.empty_feed = self._forget_records
        """Called if the feed may be full: takes its records away."""

    def _forget_records(self) -> None:
        self.feed.take(FrameBatch())

    def renewed(self) -> PublishingEngine:
        return PublishingEngine(self.book.renewed(), self.feed.with_depth, self.is_shared)

    def warm(self) -> None:
        """Load the kernels by an order in a book of its own."""
        book = self.book.tiny()
        scratch = PublishingEngine(book, with_depth=True, is_shared=self.is_shared)
        scratch.handle(WARMING_ORDER, FrameBatch())
        scratch.feed.take(FrameBatch())

    def handle(self, orders: FrameBatch, answers: FrameBatch, first: int = 0, at: int = 0, byte: int = 0) -> Handled:
        if self.feed.may_be_full:
            self.empty_feed()
        return super().handle(orders, answers, first, at, byte)
