"""The memory of an order book: one array, since each further array costs the kernels a register and a check.

The array, the arena, holds the state, then the bitmap of occupied price levels, then the levels, then the orders'
records.

A record is four 4-byte words: id, volume, next, previous. A link is the index of a record's first word. The resting
orders of a price level form a ring, oldest first, which the level itself closes. A level needs only the words next and
previous, so levels overlap: where a level's volume would be, the previous level has a link. Links are larger than any
order's volume (`FIRST_LEVEL`). So a walk along the ring that fills an incoming order ends at the level by the same
test by which it ends at an order that is too large.

Several books, one for each instrument, lie in one arena: the state, then a block for each book, then the orders'
records, which all books share. A block has the book's best keys, summary, bitmap and levels, no more than its prices
need. A level is made when the first order rests in it; until then its words are 0. So a page of a block whose prices
nobody uses takes no memory, which matters with wide prices: all levels of 65,534 prices take 1 MB a book. The rule is
the same code for one book and for several; a book alone is compiled with constants where one of several has a `Place`.

A book that keeps ids has a second array, the index, which finds resting orders by id. It has buckets by the id's low
bits, and a chain of records in each bucket. The index holds the buckets, then two words for each record: the next
record in its bucket, and its price level. Chains are rare, since there are four buckets or more for each order, and
ids count up. Several books have one index, so that a request finds its order without naming the instrument.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchange import compiled
from exchange.compiled import as_i64, as_u32, as_u64, cached_kernel, inlined, kernel

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
INSTRUMENTS = 23  # the number of books, each with a block; 0 for a book alone
BLOCK_WORDS = 24  # 8-byte words of a block
INSTRUMENT = 25  # of the newest order or request, if there are several books
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
PAGE_WORDS = 512  # 8-byte words of a page of memory
BLOCKS = FIRST_LEVEL // 2  # the 8-byte word at which the first of several blocks begins
LEVEL = 1  # the word of an index entry that holds the order's price level


class EngineKind(NamedTuple):
    """Facts of an engine that never change. Its kernels are compiled for these facts."""

    exact: bool
    keeps_ids: bool
    packed: bool
    shared: bool  # whether ids say whose an order is: those of exchange/market_ids.py
    sources: int  # checksum of the compiled files, since numba's cache looks at the date of one file only


class Place(NamedTuple):
    """The place of one of several books in the arena: its first words, in 8-byte words, and its first level's link."""

    instrument: int
    best: int
    summary: int
    bitmap: int
    first_level: int


class Book(NamedTuple):
    """The arena in words of three kinds, the index of resting orders by id, and the place of this book."""

    records: Words
    bitmap: Arena
    state: Offsets
    ids: Words
    limit: int
    exact: bool
    keeps_ids: bool
    shared: bool
    place: Any  # None for a book alone; else its Place


SEVERAL = True
"""Stands for several books, where None stands for a book alone: numba leaves out the code of the other kind."""


@inlined
def book_in(arena: Arena, index: Words, kind: EngineKind, several: Any) -> Book:
    """Return the book alone, if `several` is None; else the book of instrument 0."""
    state = as_i64(arena)
    return Book(
        as_u32(arena),
        as_u64(arena),
        state,
        as_u32(index),
        state[LIMIT],
        kind.exact,
        kind.keeps_ids,
        kind.shared,
        first_place(state, several),
    )


@inlined
def first_place(state: Offsets, several: Any) -> Any:
    if several is None:
        return None
    return place_of(state, 0)


def place_in_blocks(limit: int, block_words: int, instrument: int) -> Place:
    """Return the place of an instrument's book. A block has, in this order: best keys, summary, bitmap, levels."""
    best = BLOCKS + block_words * instrument
    summary = best + 2
    bitmap = summary + 2 * ((limit >> 12) + 1)
    levels = bitmap + 2 * ((limit >> 6) + 1)
    return Place(instrument, best, summary, bitmap, 2 * levels)


_place_in_blocks = inlined(place_in_blocks)


@inlined
def place_of(state: Offsets, instrument: int) -> Place:
    """Return the place of an instrument's book, for kernels."""
    return _place_in_blocks(state[LIMIT], state[BLOCK_WORDS], instrument)


@inlined
def book_of(book: Book, instrument: int) -> Book:
    """Return another of several books, and note its instrument as that of the newest order."""
    book.state[INSTRUMENT] = instrument
    return Book(
        book.records,
        book.bitmap,
        book.state,
        book.ids,
        book.limit,
        book.exact,
        book.keeps_ids,
        book.shared,
        place_of(book.state, instrument),
    )


@inlined
def best_word(place: Any) -> int:
    if place is None:
        return BEST
    return place.best


@inlined
def bitmap_word(place: Any) -> int:
    if place is None:
        return BITMAP
    return place.bitmap


@inlined
def summary_word(place: Any) -> int:
    if place is None:
        return SUMMARY
    return place.summary


@inlined
def first_level(place: Any) -> int:
    if place is None:
        return FIRST_LEVEL
    return place.first_level


@inlined
def best_of(book: Book, side: int) -> int:
    """Return the lowest occupied key of a side."""
    return book.state[best_word(book.place) + side]


@inlined
def set_best(book: Book, side: int, key: int) -> None:
    book.state[best_word(book.place) + side] = key


@inlined
def make_level(records: Words, place: Any, level: int) -> None:
    """Make an empty level of one of several books, unless it is made. A book alone has all its levels from the start.

    The word where the level's volume would be must end a walk along its ring, even if the level before is not made.
    """
    if place is None:
        return
    if records[level + NEXT] == NOTHING:
        records[level + NEXT] = level
        records[level + PREVIOUS] = level
        if records[level + VOLUME] == 0:
            records[level + VOLUME] = ENDLESS


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


def words_of_block(limit: int) -> int:
    """Return the 8-byte words of one of several books: whole cache lines, of 8 words each.

    The word before the first level ends the walk along its ring.
    """
    best_keys = 2
    bits = 2 * ((limit >> 12) + 1) + 2 * ((limit >> 6) + 1)
    levels = 1 + 2 * (limit + 1)
    return -(-(best_keys + bits + levels) // 8) * 8


def first_order_of_several(limit: int, instruments: int) -> int:
    """Return the link of the first order's record, after the blocks of all books."""
    return 2 * (BLOCKS + words_of_block(limit) * instruments)


@cached_kernel(compiled)
def lay_out_several(arena: Arena, limit: int, bounded: bool, instruments: int, block_words: int) -> None:
    """Make empty books: no level is made, the bits of key `limit` are set, no record is free yet."""
    state = arena.view(np.int64)
    state[LIMIT] = limit
    state[BOUNDED] = bounded
    state[INSTRUMENTS] = instruments
    state[BLOCK_WORDS] = block_words
    for instrument in range(instruments):
        place = place_of(state, instrument)
        for side in (ASK, BID):
            state[place.best + side] = limit
            arena[place.bitmap + 2 * (limit >> 6) + side] |= bit(limit)
            arena[place.summary + 2 * (limit >> 12) + side] |= bit(limit >> 6)


@cached_kernel(compiled)
def copy_used(source: Arena, target: Arena) -> None:
    """Copy an arena into a larger one of zeros, page by page, and leave out pages of zeros, which take no memory."""
    for first in range(0, len(source), PAGE_WORDS):
        last = min(first + PAGE_WORDS, len(source))
        is_used = False
        for word in range(first, last):
            if source[word] != 0:
                is_used = True
                break
        if is_used:
            target[first:last] = source[first:last]


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
