"""The memory of an order book: one array, since each further one costs the kernels a register and a check.

State comes first, then the bitmap of occupied price levels, then the levels, then the orders' records.

A record is four 4-byte words: id, volume, next, previous. A link is the index of a record's first word. A price
level closes the ring of its resting orders, oldest first, so it has the last two words only; where its volume
would be lies the level before it, and a link there. Links are larger than any order's volume (`FIRST_LEVEL`), so a
walk along the ring ends at the level by the very test that ends a fill.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from matching_engine.compiled import as_i64, as_u32, as_u64, inlined, kernel

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]
Longs = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]

ASK, BID = 0, 1  # a side within the book; on the wire one more

# State, in 8-byte words: one, or one for each side.
BEST, LIMIT, FREE, BOUNDED, BUCKETS = 0, 2, 3, 4, 5
ORDERS, ANSWER_BYTES, CONFIRMATIONS, QUOTES, REJECTIONS, CANCELS, CANCELLED = 8, 9, 10, 11, 12, 13, 14
VOLUME_IN, VOLUME_CANCELLED = 16, 18
STATE_WORDS = 32

# The bitmap, in 8-byte words, those of the two sides alternating.
BITMAP = STATE_WORDS  # a bit for each level that holds orders
SUMMARY = BITMAP + 2 * 1024  # a bit for each word of the bitmap that is not 0
BITMAP_END = SUMMARY + 2 * 16

# Levels and orders, in 4-byte words.
LARGEST_VOLUME = 0xFFFF
FIRST_LEVEL = LARGEST_VOLUME + 1
ID, VOLUME, NEXT, PREVIOUS, RECORD = 0, 1, 2, 3, 4
LEVEL_WORDS = 2
ENDLESS = 0xFFFFFFFF  # the volume in front of the first level
NOTHING = 0  # the link that leads nowhere


class Kind(NamedTuple):
    """What never changes while an engine lives: known to its kernels when they are compiled."""

    exact: bool
    keeps_ids: bool
    packed: bool
    sources: int  # checksum of the compiled files: numba's cache looks at the date of one


class Book(NamedTuple):
    """The arena under its three widths, and the index of orders by id (`by_id.py`)."""

    records: Words
    bitmap: Longs
    state: Offsets
    ids: Words
    limit: int
    exact: bool
    keeps_ids: bool


@inlined
def book_in(arena: Longs, index: Words, kind: Kind) -> Book:
    state = as_i64(arena)
    return Book(as_u32(arena), as_u64(arena), state, as_u32(index), state[LIMIT], kind.exact, kind.keeps_ids)


@inlined
def bit(number: int) -> Any:
    """A number's bit within its word."""
    return np.uint64(1) << np.uint64(number & 63)


@inlined
def link(book: Book, earlier: int, later: int) -> None:
    book.records[earlier + NEXT] = later
    book.records[later + PREVIOUS] = earlier


def first_order(limit: int) -> int:
    """Where the orders' records start."""
    return FIRST_LEVEL + RECORD + 2 * LEVEL_WORDS * (limit + 1)


@kernel
def lay_out(arena: Longs, limit: int, bounded: bool, buckets: int) -> None:
    """An empty book: every level a ring of itself, the sentinels' bits set, no record free yet."""
    records, state = arena.view(np.uint32), arena.view(np.int64)
    state[BEST + ASK] = state[BEST + BID] = state[LIMIT] = limit
    state[BOUNDED], state[BUCKETS] = bounded, buckets
    records[FIRST_LEVEL + VOLUME] = ENDLESS
    for level in range(FIRST_LEVEL, FIRST_LEVEL + 2 * LEVEL_WORDS * (limit + 1), LEVEL_WORDS):
        records[level + NEXT] = records[level + PREVIOUS] = level
    for side in (ASK, BID):
        arena[BITMAP + 2 * (limit >> 6) + side] |= bit(limit)
        arena[SUMMARY + 2 * (limit >> 12) + side] |= bit(limit >> 6)


@kernel
def free_records(arena: Longs, first: int) -> None:
    """Chain the records from `first` to the arena's end in front of the free ones, lowest first."""
    records, state = arena.view(np.uint32), arena.view(np.int64)
    last = len(records) - RECORD
    for order in range(first, last, RECORD):
        records[order + NEXT] = order + RECORD
    records[last + NEXT] = state[FREE]
    state[FREE] = first
