"""The memory of an order book: one array, since each further array costs the kernels a register and a check.

The array, the arena, holds the state, then the bitmap of occupied price levels, then the levels, then the orders'
records.

A record is four 4-byte words: id, volume, next, previous. A link is the index of a record's first word. The resting
orders of a price level form a ring, oldest first, which the level itself closes. A level needs only the words next and
previous, so levels overlap: where a level's volume would be, the previous level has a link. Links are larger than any
order's volume (`FIRST_LEVEL`). So a walk along the ring that fills an incoming order ends at the level by the same
test by which it ends at an order that is too large.

A book that keeps ids has a second array, the index, which finds resting orders by id. It has buckets by the id's low
bits, and a chain of records in each bucket. The index holds the buckets, then two words for each record: the next
record in its bucket, and its price level. Chains are rare, since there are four buckets or more for each order, and
ids count up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchange.compiled import as_i64, as_u32, as_u64, inlined, kernel

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]
Arena = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]

# A side within the book; on the wire the number is one higher.
ASK = 0
BID = 1

# State, in 8-byte words: one word for each quantity, or one for each side (BEST, VOLUME_IN, VOLUME_CANCELLED).
BEST = 0  # for each side, the lowest occupied key
LIMIT = 2  # max price + 1
FREE = 3  # the link to the first free record
BOUNDED = 4  # 1 if a full book rejects orders
BUCKETS = 5  # of the index; 0 without ids
ORDERS = 8
ANSWER_BYTES = 9
CONFIRMATIONS = 10
QUOTES = 11
REJECTIONS = 12
CANCELS = 13
CANCELLED = 14
REPLACES = 15
REPLACED = 16
COUNTERS = REPLACED + 1 - ORDERS  # number of words from ORDERS to REPLACED
VOLUME_IN = 18
VOLUME_CANCELLED = 20
FEED = 22  # the address of a feed's memory, for the kernels of an engine that publishes market data; else 0
STATE_WORDS = 32

# The bitmap, in 8-byte words: asks and bids take turns.
BITMAP = STATE_WORDS  # a bit for each level that holds orders
SUMMARY = BITMAP + 2 * 1024  # a bit for each word of the bitmap that is not 0

# Levels and orders, in 4-byte words.
LARGEST_VOLUME = 0xFFFF
FIRST_LEVEL = LARGEST_VOLUME + 1
ID = 0
VOLUME = 1
NEXT = 2
PREVIOUS = 3
RECORD = 4  # words of a record
LEVEL_WORDS = 2
ENDLESS = 0xFFFFFFFF  # the word at the place of the first level's volume
NOTHING = 0  # the link to no record
LEVEL = 1  # the word of an index entry that holds the order's price level


class EngineKind(NamedTuple):
    """Facts of an engine that never change. Its kernels are compiled for these facts."""

    exact: bool
    keeps_ids: bool
    packed: bool
    shared: bool  # whether ids say whose an order is: those of exchange/market_ids.py
    sources: int  # checksum of the compiled files, since numba's cache looks at the date of one file only


class Book(NamedTuple):
    """The arena in words of three kinds, and the index of resting orders by id."""

    records: Words
    bitmap: Arena
    state: Offsets
    ids: Words
    limit: int
    exact: bool
    keeps_ids: bool
    shared: bool


@inlined
def book_in(arena: Arena, index: Words, kind: EngineKind) -> Book:
    state = as_i64(arena)
    return Book(
        as_u32(arena), as_u64(arena), state, as_u32(index), state[LIMIT], kind.exact, kind.keeps_ids, kind.shared
    )


@inlined
def bit(number: int) -> Any:
    """A word with only the bit of this number set."""
    return np.uint64(1) << np.uint64(number & 63)


@inlined
def link(book: Book, earlier: int, later: int) -> None:
    """Make two records, or a record and its level, neighbours in a ring."""
    book.records[earlier + NEXT] = later
    book.records[later + PREVIOUS] = earlier


def first_order(limit: int) -> int:
    """The link of the first order's record."""
    return FIRST_LEVEL + RECORD + 2 * LEVEL_WORDS * (limit + 1)


@kernel
def lay_out(arena: Arena, limit: int, bounded: bool) -> None:
    """Make an empty book: each level a ring without orders, the bits of key `limit` set, no record free yet."""
    records = arena.view(np.uint32)
    state = arena.view(np.int64)
    state[BEST + ASK] = limit
    state[BEST + BID] = limit
    state[LIMIT] = limit
    state[BOUNDED] = bounded
    records[FIRST_LEVEL + VOLUME] = ENDLESS
    for level in range(FIRST_LEVEL, FIRST_LEVEL + 2 * LEVEL_WORDS * (limit + 1), LEVEL_WORDS):
        records[level + NEXT] = level
        records[level + PREVIOUS] = level
    for side in (ASK, BID):
        arena[BITMAP + 2 * (limit >> 6) + side] |= bit(limit)
        arena[SUMMARY + 2 * (limit >> 12) + side] |= bit(limit >> 6)


@kernel
def free_records(arena: Arena, first: int) -> None:
    """Put the records from `first` to the arena's end before the other free records, lowest first."""
    records = arena.view(np.uint32)
    state = arena.view(np.int64)
    last = len(records) - RECORD
    for order in range(first, last, RECORD):
        records[order + NEXT] = order + RECORD
    records[last + NEXT] = state[FREE]
    state[FREE] = first


# ---- the index ------------------------------------------------------------------------------------------------


@inlined
def bucket_of(book: Book, order_id: int) -> int:
    """The place in the index of the bucket for this id."""
    return order_id & (book.state[BUCKETS] - 1)


@inlined
def entry_of(book: Book, order: int) -> int:
    """The place in the index of the two words for this order's record."""
    return book.state[BUCKETS] + order // 2


@inlined
def find(book: Book, order_id: int) -> int:
    """The resting order of this id, or NOTHING."""
    order = book.ids[bucket_of(book, order_id)]
    while order != NOTHING and book.records[order + ID] != order_id:
        order = book.ids[entry_of(book, order)]
    return order


@inlined
def remember(book: Book, order_id: int, order: int, level: int) -> None:
    """Put a resting order at the front of its bucket's chain."""
    bucket = bucket_of(book, order_id)
    entry = entry_of(book, order)
    book.ids[entry] = book.ids[bucket]
    book.ids[entry + LEVEL] = level
    book.ids[bucket] = order


@inlined
def forget(book: Book, order: int) -> None:
    """Take an order out of its bucket's chain."""
    at = bucket_of(book, book.records[order + ID])
    while book.ids[at] != order:
        at = entry_of(book, book.ids[at])
    book.ids[at] = book.ids[entry_of(book, order)]
