"""Compiled market data: a kernel that matches orders and writes their trades and quotes into a feed's memory.

An order's answers tell its trades: each resting order that it filled, then, for each price level, the incoming order
with the level's whole volume. Market data has the former only, so that each lot is published once.

The feed's memory is one array, whose address stands in the book's state, since the type of an engine's kernel has no
further argument. It begins with the words below; the records follow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange import compiled, instruments, messages
from exchange.compiled import (
    as_i64,
    as_u8,
    bytes_at,
    field_reader,
    fingerprint,
    inlined,
    kernel,
    load_u64,
    record_writer,
    signed,
    store_u8,
    store_u64,
)
from exchange.instruments import MAX_INSTRUMENTS
from exchange.messages import (
    LAYOUTS,
    DepthLevel,
    InstrumentOrder,
    InstrumentQuote,
    MarketQuote,
    MarketTrade,
    Order,
    Quote,
    ReplaceRequest,
    Trade,
    TypedOrder,
)
from matching_engine import kernels
from matching_engine.arena import (
    ANSWER_BYTES,
    FEED,
    LARGEST_VOLUME,
    NEXT,
    VOLUME,
    Arena,
    Book,
    Bytes,
    EngineKind,
    Offsets,
    Words,
    best_of,
    book_in,
)
from matching_engine.arena import INSTRUMENT as BOOK_INSTRUMENT
from matching_engine.encoding import ANSWER_SIZES, AnswerMemory, AnswersEnd, answers_in
from matching_engine.kernels import (
    DONE,
    FOREIGN,
    ROOM,
    book_in_turn,
    close_frame,
    enter_record,
    frames_needed,
    is_pack,
    order_bytes,
    take_record,
)
from matching_engine.levels import first_occupied, key_of, level_of
from transports import lending
from transports.lending import monotonic_ns

# The feed's memory begins with these words, at these bytes.
USED = 0  # bytes of records
CAPACITY = 8  # bytes that records may take
SEQUENCE = 16  # of the last record
INSTRUMENT = 24
READ_NS = 32  # when the newest orders were read
RECORDS = 64  # the byte at which the records begin

TRADE = LAYOUTS[Trade].code
QUOTE = LAYOUTS[Quote].code
ORDER = LAYOUTS[Order].code
TYPED_ORDER = LAYOUTS[TypedOrder].code
REPLACE_REQUEST = LAYOUTS[ReplaceRequest].code
INSTRUMENT_ORDER = LAYOUTS[InstrumentOrder].code
INSTRUMENT_QUOTE = LAYOUTS[InstrumentQuote].code
LARGEST_RECORD = max(LAYOUTS[message].size for message in messages.MARKET_DATA_TYPES)
MOST_BYTES_OF_ORDER = (LARGEST_VOLUME + 1) * LARGEST_RECORD
"""The most that one order publishes: a trade a lot, and a quote."""
FEED_BYTES = 2 * MOST_BYTES_OF_ORDER
"""Bytes of records that a feed holds. It counts as full once the records of a large order may not fit."""
HAS_CHANGED = RECORDS + FEED_BYTES
"""With several instruments, the byte at which a byte for each of them begins: 1 if it had orders since its depth was
published."""
MEMORY_BYTES = HAS_CHANGED + MAX_INSTRUMENTS
DEPTH = 10
"""Price levels of each side in the depth of a book."""

SOURCES = kernels.SOURCES ^ fingerprint(compiled, instruments, messages, kernels, lending)
_order_id = field_reader("id", Order, TypedOrder, InstrumentOrder)
_replaced_order = field_reader("order_id", ReplaceRequest)
_trade_id, _trade_price, _trade_volume = (field_reader(name, Trade) for name in ("id", "price", "volume"))
_bid, _ask = (field_reader(name, Quote) for name in ("bid", "ask"))
_instrument_bid, _instrument_ask = (field_reader(name, InstrumentQuote) for name in ("bid", "ask"))
_put_trade = record_writer(MarketTrade, "instrument", "sequence", "read_ns", "price", "volume")
_put_quote = record_writer(MarketQuote, "instrument", "sequence", "read_ns", "bid", "ask")
_put_level = record_writer(DepthLevel, "instrument", "sequence", "read_ns", "side", "place", "price", "volume")


@inlined
def next_sequence(feed: Any) -> int:
    """Count a record, and return its number."""
    sequence = signed(load_u64(feed, SEQUENCE)) + 1
    store_u64(feed, SEQUENCE, sequence)
    return sequence


@inlined
def incoming_id(source: Any, at: int) -> int:
    """Return the id that the record at byte `at` has in its own trades; -1 if it causes none."""
    code = source[at]
    if (code == ORDER) | (code == TYPED_ORDER) | (code == INSTRUMENT_ORDER):
        return signed(_order_id(source, at))
    if code == REPLACE_REQUEST:
        return signed(_replaced_order(source, at))
    return -1


@inlined
def publish_answers(feed: Any, buffer: Bytes, begin: int, end: int, incoming: int) -> None:
    """Write the trades and quotes among an order's answers, which are the bytes from `begin` to `end`, into the feed.

    `incoming`: the id that the order has in its trades. Its own trade ends each price level, and is left out.
    """
    instrument = signed(load_u64(feed, INSTRUMENT))
    read_ns = signed(load_u64(feed, READ_NS))
    to = RECORDS + signed(load_u64(feed, USED))
    filled = 0  # lots of resting orders of this price level
    at = begin
    while at < end:
        code = buffer[at]
        if code == TRADE:
            price = signed(_trade_price(buffer, at))
            volume = signed(_trade_volume(buffer, at))
            ends_level = signed(_trade_id(buffer, at)) == incoming and volume == filled
            if ends_level:
                filled = 0
            else:
                filled += volume
                to = _put_trade(feed, to, (instrument, next_sequence(feed), read_ns, price, volume))
        elif code == QUOTE:
            bid = signed(_bid(buffer, at))
            ask = signed(_ask(buffer, at))
            to = _put_quote(feed, to, (instrument, next_sequence(feed), read_ns, bid, ask))
        elif code == INSTRUMENT_QUOTE:
            bid = signed(_instrument_bid(buffer, at))
            ask = signed(_instrument_ask(buffer, at))
            to = _put_quote(feed, to, (instrument, next_sequence(feed), read_ns, bid, ask))
        at += ANSWER_SIZES[code]
    store_u64(feed, USED, to - RECORDS)


@inlined
def note_instrument(feed: Any, state: Offsets, place: Any) -> None:
    """Tell the feed of which instrument the newest order is. A book alone has the feed's own."""
    if place is None:
        return
    store_u64(feed, INSTRUMENT, state[BOOK_INSTRUMENT])
    store_u8(feed, HAS_CHANGED + state[BOOK_INSTRUMENT], 1)


@inlined
def lacks_room(feed: Any, capacity: int) -> bool:
    """Return whether the records of a large order may not fit into the feed."""
    return capacity - signed(load_u64(feed, USED)) < MOST_BYTES_OF_ORDER


@inlined
def take_and_publish_record(
    book: Book, answers: AnswerMemory, end: AnswersEnd, source: Any, start: int, stop: int, feed: Any, capacity: int
) -> tuple[int, int, AnswersEnd]:
    """Enter a frame of one record, and publish it. Returns why it stopped, and where."""
    if lacks_room(feed, capacity):
        return ROOM, start, end
    answered = end.byte
    why, end = take_record(book, answers, end, source, start, stop)
    if why != DONE:
        return why, start, end
    note_instrument(feed, book.state, book.place)
    publish_answers(feed, answers.buffer, answered, end.byte, incoming_id(source, start))
    return DONE, stop, end


@inlined
def take_and_publish_pack(
    book: Book,
    answers: AnswerMemory,
    end: AnswersEnd,
    source: Any,
    at: int,
    stop: int,
    largest_frame: int,
    feed: Any,
    capacity: int,
) -> tuple[int, int, AnswersEnd]:
    """Enter the records of a well-formed frame from byte `at` on, and publish each. Returns why it stopped, and where.

    It is `take_pack` of matching_engine/kernels.py with a feed.
    """
    while at < stop:
        if lacks_room(feed, capacity):
            return ROOM, at, end
        answered = end.byte
        why, end = enter_record(book, answers, end, source, at)
        if why != DONE:
            return why, at, end
        note_instrument(feed, book.state, book.place)
        publish_answers(feed, answers.buffer, answered, end.byte, incoming_id(source, at))
        at += order_bytes(book.place, source[at])
    if end.frame + frames_needed(answers, end, largest_frame) > answers.room_frames:
        return ROOM, at, end
    return DONE, at, close_frame(answers, end, largest_frame)


@cache
def publishing_handler(
    *, exact: bool, keeps_ids: bool, packed: bool, shared: bool, several: Any = None
) -> Callable[..., tuple[int, int, int, int, int]]:
    """Return the kernel of an engine that publishes: `handler` of matching_engine/kernels.py.

    It stops with ROOM if the feed may lack room for the next order.
    """
    kind = EngineKind(exact, keeps_ids, packed, shared, sources=SOURCES)

    def handle(
        orders: Bytes,
        order_offsets: Offsets,
        first: int,
        count: int,
        resume_at: int,
        packing: int,
        buffer: Bytes,
        offsets: Offsets,
        frames: int,
        resume_to: int,
        largest_frame: int,
        arena: Arena,
        index: Words,
    ) -> tuple[int, int, int, int, int]:
        book = book_in(arena, index, kind, several)
        source = as_u8(orders)
        source_offsets = as_i64(order_offsets)
        byte = max(resume_to, offsets[frames])
        end = AnswersEnd(byte, frames)
        answers = answers_in(buffer, offsets, end, kind.packed)
        feed = bytes_at(book.state[FEED], MEMORY_BYTES)
        store_u64(feed, READ_NS, monotonic_ns(np.empty(2, np.int64)))
        capacity = signed(load_u64(feed, CAPACITY))
        why = DONE
        frame = first
        at = source_offsets[first]
        while frame < count:
            stop = source_offsets[frame + 1]
            if kind.packed:
                at = max(at, resume_at)
                if at == source_offsets[frame] and not is_pack(book, source, at, stop, packing):
                    why = FOREIGN
                else:
                    why, at, end = take_and_publish_pack(
                        book, answers, end, source, at, stop, largest_frame, feed, capacity
                    )
            else:
                why, at, end = take_and_publish_record(book, answers, end, source, at, stop, feed, capacity)
            if why != DONE:
                break
            frame += 1
        book.state[ANSWER_BYTES] += end.byte - byte
        return why, frame, at, end.frame, end.byte

    traits = {"_exact": exact, "_ids": keeps_ids, "_packed": packed, "_shared": shared, "_several": several}
    handle.__qualname__ = "publish" + "".join(trait for trait, is_set in traits.items() if is_set)
    return kernel(handle)


# ---- depth ---------------------------------------------------------------------------------------------------


@inlined
def volume_of_level(book: Book, side: int, key: int) -> int:
    """Return the lots that rest at a price level."""
    level = level_of(book, side, key)
    volume = 0
    order = signed(book.records[level + NEXT])
    while order != level:
        volume += signed(book.records[order + VOLUME])
        order = signed(book.records[order + NEXT])
    return volume


DEPTH_KIND = EngineKind(exact=False, keeps_ids=False, packed=False, shared=False, sources=SOURCES)


@cache
def depth_reader(*, several: Any = None) -> Callable[[Arena, Words, int, npt.NDArray[np.int64]], None]:
    """Return the kernel that reads the depth of an instrument's book."""

    def read_depth(arena: Arena, index: Words, instrument: int, depth: npt.NDArray[np.int64]) -> None:
        """Fill `depth`, shape (2, DEPTH, 2), with price and volume of the best levels of asks, then bids.

        Each side's levels stand from the best price on; 0 for no level.
        """
        first = book_in(arena, index, DEPTH_KIND, several)
        fill_depth(book_in_turn(first, first.place, instrument), depth)

    read_depth.__qualname__ = f"read_depth{'_several' if several else ''}_{SOURCES:08x}"
    return kernel(read_depth)


@inlined
def fill_depth(book: Book, depth: npt.NDArray[np.int64]) -> None:
    for side in range(2):
        key = first_occupied(book, side, best_of(book, side))
        for place in range(DEPTH):
            depth[side, place, 0] = 0
            depth[side, place, 1] = 0
            if key < book.limit:
                depth[side, place, 0] = key_of(book, side, key)
                depth[side, place, 1] = volume_of_level(book, side, key)
                key = first_occupied(book, side, key + 1)


def _publish_depth(feed: Bytes, published: npt.NDArray[np.int64], depth: npt.NDArray[np.int64]) -> None:
    """Write a record for each level of `depth` that is another in `published`, and note it there."""
    instrument = signed(load_u64(feed, INSTRUMENT))
    read_ns = signed(load_u64(feed, READ_NS))
    to = RECORDS + signed(load_u64(feed, USED))
    for side in range(2):
        for place in range(DEPTH):
            price = depth[side, place, 0]
            volume = depth[side, place, 1]
            if price != published[side, place, 0] or volume != published[side, place, 1]:
                published[side, place, 0] = price
                published[side, place, 1] = volume
                sequence = next_sequence(feed)
                to = _put_level(feed, to, (instrument, sequence, read_ns, side + 1, place, price, volume))
    store_u64(feed, USED, to - RECORDS)


_publish_depth.__qualname__ += f"_{SOURCES:08x}"
publish_depth = kernel(_publish_depth)
