"""The compiled core: order frames in, answer frames out, the order book in between.

Rules of this file:

- Price levels go by key, so that one code serves both sides: an ask's key is its price, a bid's is
  `limit - price`, where limit = max price + 1. On either side the lowest key is the best price, and an
  incoming order reaches every opposite key up to that of its own price. Key `limit` stands for "none": its bit
  in the bitmap is always set, so every search ends, and its price is what a quote says of an empty side.
- Records are four words: id, volume, next, previous; a link is the index of a record's first word. A price
  level is a record too, and closes the ring of its resting orders, oldest first. Its volume is larger than any
  order's, so a walk along the ring ends at it by the very test that ends a fill.
- Nothing here is checked by numba: an order's fields, a free record and room for its answers are made sure of
  before the first write (`admit`).
- Numba caches by this file's date: constants and helpers that may change stay in this file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from matching_engine.compiled import (
    inlined,
    kernel,
    load_u16,
    load_u32,
    load_u64,
    memory_of,
    store_u16,
    store_u64,
    trailing_zeros,
)

Words = npt.NDArray[np.uint32]

# A record's words.
ID, VOLUME, NEXT, PREVIOUS, RECORD = 0, 1, 2, 3, 4
LEVEL = 1  # of an order's two words in the index: the next in its bucket, its level
NOTHING = 0  # the link that leads nowhere: key 0 is no price
ENDLESS = 0xFFFFFFFF  # a level's volume

# The bitmap: both sides' words alternate; its summary has a bit for each word that is not 0.
SUMMARY = 2 * 1024
BITMAP_WORDS = SUMMARY + 2 * 16

# The state: one word each, or one for each side.
BEST, LIMIT, EXACT, FREE, BOUNDED, CAPACITY, IDS = 0, 2, 3, 4, 5, 6, 7
ORDERS, TRADE_BYTES, CONFIRMATIONS, QUOTES, REJECTIONS, CANCELS, CANCELLED = 8, 9, 10, 11, 12, 13, 14
VOLUME_IN, VOLUME_TRADED, VOLUME_CANCELLED = 16, 18, 20
STATE_WORDS = 22

# Why a kernel came back.
DONE, ROOM, FOREIGN, GROW = 0, 1, 2, 3

# Wire types and sizes.
ORDER, CONFIRMATION, TRADE, QUOTE, REJECTION, CANCEL, CANCELLATION = 1, 2, 3, 4, 8, 10, 11
ORDER_BYTES, CONFIRMATION_BYTES, TRADE_BYTES_EACH, QUOTE_BYTES = 10, 5, 9, 5
REJECTION_BYTES, CANCEL_BYTES, CANCELLATION_BYTES = 6, 5, 7
BAD_SIDE, BAD_PRICE, BAD_VOLUME, BOOK_FULL, DUPLICATE_ID, UNKNOWN_ID = 1, 2, 3, 4, 5, 6
LARGEST_VOLUME = 0xFFFF
SLACK_BYTES = 32  # quote, confirmation, and what an 8-byte store writes past a record
SLACK_FRAMES = 4
MOST_ANSWERS = 2 * LARGEST_VOLUME + SLACK_FRAMES
MOST_ANSWER_BYTES = 2 * LARGEST_VOLUME * TRADE_BYTES_EACH + SLACK_BYTES


class Book(NamedTuple):
    """The arrays of one order book."""

    records: Words  # price levels first (see `level_of`), then orders
    occupied: npt.NDArray[np.uint64]  # which levels hold orders
    index: Words  # orders by id: buckets, then two words for each record; one word where ids are not kept
    state: npt.NDArray[np.int64]


class Answers(NamedTuple):
    """Where answers go. `each` is 1 where every answer is a frame of its own, 0 where a frame takes several."""

    buffer: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]
    each: int
    room_bytes: int
    room_frames: int


class End(NamedTuple):
    """How far the answers have been written."""

    byte: int
    frame: int


# ---- price levels ------------------------------------------------------------------------------------------


@inlined
def key_of(book: Book, side: int, price: int) -> int:
    """Also its own inverse: the price of a key."""
    return book.state[LIMIT] - price if side else price


@inlined
def level_of(side: int, key: int) -> int:
    return RECORD * (2 * key + side)


@inlined
def bit(key: int) -> Any:
    return np.uint64(1) << np.uint64(key & 63)


@inlined
def mark_occupied(book: Book, side: int, key: int) -> None:
    word = key >> 6
    book.occupied[2 * word + side] |= bit(key)
    book.occupied[SUMMARY + 2 * (word >> 6) + side] |= bit(word)


@inlined
def mark_empty(book: Book, side: int, key: int) -> None:
    word = key >> 6
    left = book.occupied[2 * word + side] & ~bit(key)
    book.occupied[2 * word + side] = left
    if left == 0:
        book.occupied[SUMMARY + 2 * (word >> 6) + side] &= ~bit(word)


@inlined
def bits_from(words: Any, at: int, first: int) -> Any:
    return words[at] >> np.uint64(first & 63)


@inlined
def first_occupied(book: Book, side: int, key: int) -> int:
    """The best occupied key that is no better than `key`; `limit` where there is none."""
    word = key >> 6
    bits = bits_from(book.occupied, 2 * word + side, key)
    if bits:
        return key + trailing_zeros(bits)
    word = next_word(book, side, word + 1)
    return (word << 6) + trailing_zeros(book.occupied[2 * word + side])


@inlined
def next_word(book: Book, side: int, word: int) -> int:
    """The first word from `word` on that is not 0: the sentinel's at the latest."""
    group = word >> 6
    bits = bits_from(book.occupied, SUMMARY + 2 * group + side, word)
    if bits:
        return word + trailing_zeros(bits)
    group += 1
    while book.occupied[SUMMARY + 2 * group + side] == 0:
        group += 1
    return (group << 6) + trailing_zeros(book.occupied[SUMMARY + 2 * group + side])


# ---- orders by id (only where the book keeps ids) ------------------------------------------------------------


@inlined
def bucket_of(book: Book, order_id: int) -> int:
    return order_id & (book.state[IDS] - 1)


@inlined
def entry_of(book: Book, order: int) -> int:
    return book.state[IDS] + (order >> 1)


@inlined
def find(book: Book, order_id: int) -> int:
    """The resting order of that id, or NOTHING."""
    order = book.index[bucket_of(book, order_id)]
    while order != NOTHING and book.records[order + ID] != order_id:
        order = book.index[entry_of(book, order)]
    return order


@inlined
def remember(book: Book, order_id: int, order: int, level: int) -> None:
    bucket, entry = bucket_of(book, order_id), entry_of(book, order)
    book.index[entry], book.index[entry + LEVEL] = book.index[bucket], level
    book.index[bucket] = order


@inlined
def forget(book: Book, order: int) -> None:
    at = bucket_of(book, book.records[order + ID])
    while book.index[at] != order:
        at = entry_of(book, book.index[at])
    book.index[at] = book.index[entry_of(book, order)]


# ---- answers -------------------------------------------------------------------------------------------------


@inlined
def written(answers: Answers, end: End, size: int, wanted: int) -> End:
    """The new end, behind an answer of `size` bytes; the old one unless wanted is 1 (no branch to guess)."""
    byte = end.byte + wanted * size
    answers.ends[end.frame + 1] = byte
    return End(byte, end.frame + (answers.each & wanted))


@inlined
def write_trade(answers: Answers, end: End, order_id: int, price: int, volume: int) -> End:
    store_u64(answers.buffer, end.byte, TRADE | order_id << 8 | price << 40 | volume << 56)
    store_u16(answers.buffer, end.byte + 7, volume)
    return written(answers, end, TRADE_BYTES_EACH, 1)


@inlined
def write_quote(book: Book, answers: Answers, end: End, wanted: int) -> End:
    ask, bid = book.state[BEST], book.state[LIMIT] - book.state[BEST + 1]
    store_u64(answers.buffer, end.byte, QUOTE | bid << 8 | ask << 24)
    book.state[QUOTES] += wanted
    return written(answers, end, QUOTE_BYTES, wanted)


@inlined
def write_confirmation(book: Book, answers: Answers, end: End, order_id: int, wanted: int) -> End:
    store_u64(answers.buffer, end.byte, CONFIRMATION | order_id << 8)
    book.state[CONFIRMATIONS] += wanted
    return written(answers, end, CONFIRMATION_BYTES, wanted)


@inlined
def write_rejection(book: Book, answers: Answers, end: End, order_id: int, reason: int) -> End:
    store_u64(answers.buffer, end.byte, REJECTION | order_id << 8 | reason << 40)
    book.state[REJECTIONS] += 1
    return written(answers, end, REJECTION_BYTES, 1)


@inlined
def write_cancelled(book: Book, answers: Answers, end: End, order_id: int, volume: int) -> End:
    store_u64(answers.buffer, end.byte, CANCELLATION | order_id << 8 | volume << 40)
    book.state[CANCELLED] += 1
    return written(answers, end, CANCELLATION_BYTES, 1)


# ---- the matching rule ---------------------------------------------------------------------------------------


@inlined
def link(book: Book, earlier: int, later: int) -> None:
    book.records[earlier + NEXT] = later
    book.records[later + PREVIOUS] = earlier


@inlined
def release(book: Book, order: int) -> None:
    """Give a finished order's record back."""
    if book.state[IDS]:
        forget(book, order)
    book.records[order + NEXT] = book.state[FREE]
    book.state[FREE] = order


@inlined
def close_level(book: Book, side: int, key: int) -> int:
    """The level has emptied: the next best one behind it."""
    mark_empty(book, side, key)
    following = first_occupied(book, side, key)
    if book.state[BEST + side] == key:
        book.state[BEST + side] = following
    return following


@inlined
def fill_level(
    book: Book, answers: Answers, end: End, level: int, price: int, remaining: int
) -> tuple[int, int, End]:
    """Trade with the level's resting orders, oldest first: what remains, the level's head, the answers' end."""
    resting = book.records[level + NEXT]
    while book.records[resting + VOLUME] <= remaining:
        volume = book.records[resting + VOLUME]
        end = write_trade(answers, end, book.records[resting + ID], price, volume)
        remaining -= volume
        following = book.records[resting + NEXT]
        release(book, resting)
        resting = following
    link(book, level, resting)
    return remaining, resting, end


@inlined
def match(
    book: Book, answers: Answers, end: End, order_id: int, side: int, price: int, volume: int
) -> tuple[int, End]:
    """Trade while the incoming order crosses the opposite side, level by level: what remains of it."""
    opposite, remaining = side ^ 1, volume
    reach = key_of(book, opposite, price)
    key = first_occupied(book, opposite, reach) if book.state[EXACT] else book.state[BEST + opposite]
    while key <= reach and remaining > 0:
        level, level_price, before = level_of(opposite, key), key_of(book, opposite, key), remaining
        remaining, resting, end = fill_level(book, answers, end, level, level_price, remaining)
        if resting == level:
            key = close_level(book, opposite, key)
        elif remaining > 0:
            book.records[resting + VOLUME] -= remaining
            end = write_trade(answers, end, book.records[resting + ID], level_price, remaining)
            remaining = 0
        end = write_trade(answers, end, order_id, level_price, before - remaining)
    return remaining, end


@inlined
def rest(book: Book, order_id: int, side: int, price: int, volume: int) -> None:
    """Put what is left of the incoming order last in time at its price level."""
    order = book.state[FREE]
    book.state[FREE] = book.records[order + NEXT]
    book.records[order + ID], book.records[order + VOLUME] = order_id, volume
    key = key_of(book, side, price)
    level = level_of(side, key)
    link(book, book.records[level + PREVIOUS], order)
    link(book, order, level)
    mark_occupied(book, side, key)
    book.state[BEST + side] = min(book.state[BEST + side], key)
    if book.state[IDS]:
        remember(book, order_id, order, level)


@inlined
def take_order(
    book: Book, answers: Answers, end: End, order_id: int, side: int, price: int, volume: int
) -> End:
    """An order that may enter: trades, rest, quote, confirmation."""
    best_ask, best_bid, start = book.state[BEST], book.state[BEST + 1], end.byte
    remaining, end = match(book, answers, end, order_id, side, price, volume)
    if remaining > 0:
        rest(book, order_id, side, price, remaining)
    book.state[ORDERS] += 1
    book.state[TRADE_BYTES] += end.byte - start
    book.state[VOLUME_IN + side] += volume
    book.state[VOLUME_TRADED] += volume - remaining
    moved = (book.state[BEST] != best_ask) | (book.state[BEST + 1] != best_bid)
    end = write_quote(book, answers, end, np.int64(moved))
    return write_confirmation(book, answers, end, order_id, np.int64(remaining == volume))


@inlined
def crosses(book: Book, side: int, price: int) -> bool:
    opposite = side ^ 1
    reach = key_of(book, opposite, price)
    best = first_occupied(book, opposite, reach) if book.state[EXACT] else book.state[BEST + opposite]
    return best <= reach


@inlined
def objection(book: Book, order_id: int, wire_side: int, price: int, volume: int) -> int:
    """The reason to reject an order, or 0. A crossing order needs no free record: it ends, or frees one."""
    if wire_side < 1 or wire_side > 2:
        return BAD_SIDE
    if price < 1 or price >= book.state[LIMIT]:
        return BAD_PRICE
    if volume == 0:
        return BAD_VOLUME
    if book.state[IDS] and find(book, order_id) != NOTHING:
        return DUPLICATE_ID
    if book.state[FREE] == NOTHING and not crosses(book, wire_side - 1, price):
        return BOOK_FULL
    return 0


@inlined
def take_cancel(book: Book, answers: Answers, end: End, order_id: int) -> End:
    book.state[CANCELS] += 1
    order = find(book, order_id) if book.state[IDS] else NOTHING
    if order == NOTHING:
        return write_rejection(book, answers, end, order_id, UNKNOWN_ID)
    best_ask, best_bid, volume = book.state[BEST], book.state[BEST + 1], book.records[order + VOLUME]
    take_out(book, order)
    moved = (book.state[BEST] != best_ask) | (book.state[BEST + 1] != best_bid)
    end = write_quote(book, answers, end, np.int64(moved))
    return write_cancelled(book, answers, end, order_id, volume)


@inlined
def take_out(book: Book, order: int) -> None:
    """Unlink a resting order from its level."""
    level = book.index[entry_of(book, order) + LEVEL]
    side, key = (level // RECORD) & 1, level // RECORD >> 1
    book.state[VOLUME_CANCELLED + side] += book.records[order + VOLUME]
    link(book, book.records[order + PREVIOUS], book.records[order + NEXT])
    release(book, order)
    if book.records[level + NEXT] == level:
        close_level(book, side, key)


# ---- frames --------------------------------------------------------------------------------------------------


@inlined
def record_bytes(buffer: Any, at: int) -> int:
    """The size of the order or cancel there, or 0."""
    if buffer[at] == ORDER:
        return ORDER_BYTES
    return CANCEL_BYTES if buffer[at] == CANCEL else 0


@inlined
def is_business_frame(buffer: Any, start: int, stop: int, packing: int) -> bool:
    """One to `packing` whole records of orders or cancels, and nothing else."""
    at, count = start, 0
    while at < stop:
        size = record_bytes(buffer, at)
        if size == 0:
            return False
        at += size
        count += 1
    return at == stop and 0 < count <= packing


@inlined
def has_room(answers: Answers, end: End, volume: int) -> bool:
    """Whether the answers to an order of this volume fit in any case: two trades a lot, at most."""
    trades = 2 * volume
    return (
        end.byte + trades * TRADE_BYTES_EACH + SLACK_BYTES <= answers.room_bytes
        and end.frame + trades + SLACK_FRAMES <= answers.room_frames
    )


@inlined
def answer_bytes(buffer: Any, at: int) -> int:
    kind = buffer[at]
    if kind == TRADE:
        return TRADE_BYTES_EACH
    if kind == REJECTION:
        return REJECTION_BYTES
    return CANCELLATION_BYTES if kind == CANCELLATION else QUOTE_BYTES


@inlined
def close_frame(answers: Answers, end: End, largest_frame: int) -> End:
    """End the frame that holds the answers to one order frame; split it where it is too large."""
    frame, at = end.frame, answers.ends[end.frame]
    while end.byte - answers.ends[frame] > largest_frame:
        size = answer_bytes(answers.buffer, at)
        if at > answers.ends[frame] and at + size - answers.ends[frame] > largest_frame:
            frame += 1
            answers.ends[frame] = at
        at += size
    answers.ends[frame + 1] = end.byte
    return End(end.byte, frame + 1)


@kernel
def handle(
    orders: npt.NDArray[np.uint8], order_ends: npt.NDArray[np.int64], first: int, count: int, resume_at: int,
    buffer: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], frames: int, byte: int,
    packing: int, largest_frame: int,
    records: Words, occupied: npt.NDArray[np.uint64], index: Words, state: npt.NDArray[np.int64],
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Match order frames first..count-1: why it stopped, the next frame and byte, the answers' frames and bytes.

    `resume_at` is the byte of the first frame at which to go on, where an earlier call stopped within it.
    """
    book = Book(memory_of(records), memory_of(occupied), memory_of(index), memory_of(state))
    answers = Answers(memory_of(buffer), memory_of(ends), np.int64(packing == 1), len(buffer), len(ends))
    end = End(byte, frames)
    for frame in range(first, count):
        start, stop = order_ends[frame], order_ends[frame + 1]
        at = max(start, resume_at)
        if at == start and not is_business_frame(orders, start, stop, packing):
            return FOREIGN, frame, 0, end.frame, end.byte
        while at < stop:
            if orders[at] == CANCEL:
                if not has_room(answers, end, 0):
                    return ROOM, frame, at, end.frame, end.byte
                end = take_cancel(book, answers, end, load_u32(orders, at + 1))
                at += CANCEL_BYTES
                continue
            head, volume = load_u64(orders, at), load_u16(orders, at + 8)
            order_id, side, price = (head >> 8) & 0xFFFFFFFF, (head >> 40) & 0xFF, np.int64(head >> 48)
            if not has_room(answers, end, volume):
                return ROOM, frame, at, end.frame, end.byte
            if book.state[FREE] == NOTHING and not book.state[BOUNDED]:
                return GROW, frame, at, end.frame, end.byte
            reason = objection(book, order_id, side, price, volume)
            if reason:
                book.state[ORDERS] += 1
                end = write_rejection(book, answers, end, order_id, reason)
            else:
                end = take_order(book, answers, end, order_id, side - 1, price, volume)
            at += ORDER_BYTES
        if packing > 1:
            if end.frame + (end.byte - ends[end.frame]) // 8 + SLACK_FRAMES > len(ends):
                return ROOM, frame, at, end.frame, end.byte
            end = close_frame(answers, end, largest_frame)
    return DONE, count, 0, end.frame, end.byte


# ---- memory --------------------------------------------------------------------------------------------------


@kernel
def free_records(records: Words, first: int, state: npt.NDArray[np.int64]) -> None:
    """Chain the records from `first` on in front of the free ones, lowest first."""
    last = len(records) - RECORD
    for order in range(first, last, RECORD):
        records[order + NEXT] = order + RECORD
    records[last + NEXT] = state[FREE]
    state[FREE] = first


@kernel
def open_levels(records: Words, occupied: npt.NDArray[np.uint64], limit: int) -> None:
    """Every level empty: a ring of itself; the sentinels' bits set."""
    for level in range(0, RECORD * 2 * (limit + 1), RECORD):
        records[level + VOLUME] = ENDLESS
        records[level + NEXT] = records[level + PREVIOUS] = level
    for side in range(2):
        occupied[2 * (limit >> 6) + side] |= bit(limit)
        occupied[SUMMARY + 2 * (limit >> 12) + side] |= bit(limit >> 6)


@kernel
def reindex(records: Words, occupied: npt.NDArray[np.uint64], index: Words, state: npt.NDArray[np.int64]) -> None:
    """Enter every resting order into an empty index."""
    book = Book(memory_of(records), memory_of(occupied), memory_of(index), memory_of(state))
    for level in range(0, RECORD * 2 * (state[LIMIT] + 1), RECORD):
        order = np.int64(records[level + NEXT])
        while order != level:
            remember(book, np.int64(records[order + ID]), order, level)
            order = np.int64(records[order + NEXT])
