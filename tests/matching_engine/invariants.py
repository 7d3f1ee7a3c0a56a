"""Checks every invariant of an order book, or of the books of several instruments, against their memory.

Tests call `check` after each step.
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from matching_engine import arena as layout
from matching_engine.order_book import OrderBook


class BrokenInvariant(AssertionError):
    """The book contradicts itself."""


class Level(NamedTuple):
    """A price level that holds orders."""

    place: int
    """The link to the level."""
    instrument: int
    side: int  # 0 asks, 1 bids
    key: int


Rings = dict[Level, list[int]]
"""The links of the orders of each level that holds any, oldest first."""


def check(book: OrderBook) -> None:
    """Check the book. BrokenInvariant if it contradicts itself. O(levels + capacity)."""
    _check_facts(book)
    rings: Rings = {}
    for instrument in range(book.instruments or 1):
        rings_of_instrument = _rings(book, instrument)
        _check_bitmap(book, instrument, list(rings_of_instrument))
        _check_best(book, instrument, list(rings_of_instrument))
        rings |= rings_of_instrument
    _check_unused(book)
    _check_records(book, list(chain.from_iterable(rings.values())))
    _check_volume(book, rings)
    if book.with_ids:
        _check_index(book, rings)


def _claim(holds: bool, claim: str) -> None:
    """Raise BrokenInvariant with this claim unless it holds."""
    if not holds:
        raise BrokenInvariant(claim)


def _words(book: OrderBook) -> memoryview:
    """Return the records as a memoryview, from which Python reads words three times as fast as from an array."""
    return memoryview(book.records)


def _check_facts(book: OrderBook) -> None:
    """Check the words of the state that never change."""
    _claim(book.state[layout.LIMIT] == book.max_price + 1, "the state has the highest price")
    _claim(book.state[layout.BOUNDED] == book.bounded, "the state says whether the book is bounded")
    _claim(book.state[layout.INSTRUMENTS] == (book.instruments or 0), "the state has the number of instruments")
    block_words = 0 if book.instruments is None else layout.words_of_block(book.max_price + 1)
    _claim(book.state[layout.BLOCK_WORDS] == block_words, "the state has the size of a block")


def _rings(book: OrderBook, instrument: int) -> Rings:
    """Return the rings of an instrument. The levels of a book alone are all made; those of several are made lazily."""
    first = book.place(instrument).first_level
    count = 2 * (book.max_price + 2)
    volume_words = book.records[first + layout.VOLUME :][: layout.LEVEL_WORDS * count : layout.LEVEL_WORDS]
    next_links = book.records[first + layout.NEXT :][: layout.LEVEL_WORDS * count : layout.LEVEL_WORDS]
    previous_links = book.records[first + layout.PREVIOUS :][: layout.LEVEL_WORDS * count : layout.LEVEL_WORDS]
    is_made = next_links != layout.NOTHING
    _claim(book.instruments is not None or bool(is_made.all()), "a book alone has all its levels from the start")
    _claim(bool((next_links[is_made] >= layout.FIRST_LEVEL).all()), "a level's links are larger than any volume")
    _claim(
        bool((volume_words[is_made] >= layout.FIRST_LEVEL).all()),
        "the word before a level that is made is larger than any volume",
    )
    unmade_words = set(previous_links[~is_made].tolist())
    _claim(unmade_words <= {layout.NOTHING, layout.ENDLESS}, "a level that is not made has no links")
    places = first + layout.LEVEL_WORDS * np.arange(count)
    is_occupied = is_made & (next_links != places)  # the next link of an empty level is the level itself
    words = _words(book)
    rings: Rings = {}
    for number in np.flatnonzero(is_occupied).tolist():
        level = Level(int(places[number]), instrument, side=number % 2, key=number // 2)
        rings[level] = _ring(book, words, level.place)
    return rings


def _ring(book: OrderBook, words: memoryview, level: int) -> list[int]:
    """Return the orders of one level, oldest first."""
    ring: list[int] = []
    earlier = level
    place = words[level + layout.NEXT]
    first_order = book.first_order
    capacity = book.capacity
    while place != level:
        _claim(place >= first_order and len(ring) < capacity, "a level's ring holds orders")
        _claim(words[place + layout.PREVIOUS] == earlier, "the previous link leads to the record before")
        _claim(1 <= words[place + layout.VOLUME] <= layout.LARGEST_VOLUME, "a resting order has volume")
        ring.append(place)
        earlier = place
        place = words[place + layout.NEXT]
    _claim(words[level + layout.PREVIOUS] == earlier, "a level's previous link leads to its youngest order")
    return ring


def _check_bitmap(book: OrderBook, instrument: int, levels: list[Level]) -> None:
    limit = book.max_price + 1
    place = book.place(instrument)
    expected = {(level.side, level.key) for level in levels}
    expected |= {(layout.ASK, limit), (layout.BID, limit)}  # the end of every search
    bitmap = book.arena[place.bitmap : place.bitmap + _bitmap_words(book)]
    _claim(_marked(bitmap) == expected, "the bitmap marks the levels that hold orders")
    expected_words = {(side, key >> 6) for side, key in expected}
    summary = book.arena[place.summary : place.summary + _summary_words(book)]
    _claim(_marked(summary) == expected_words, "the summary marks the words that are not 0")


def _bitmap_words(book: OrderBook) -> int:
    """Return the 8-byte words of an instrument's bitmap, of both sides."""
    return 2 * ((book.max_price + 1 >> 6) + 1)


def _summary_words(book: OrderBook) -> int:
    """Return the 8-byte words of an instrument's summary, of both sides."""
    return 2 * ((book.max_price + 1 >> 12) + 1)


def _marked(words: layout.Arena) -> set[tuple[int, int]]:
    """Return the side and the number of each bit that is set. The 64-bit words of the two sides alternate."""
    bits = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    marked = set()
    for bit in bits.tolist():
        word, bit_of_word = divmod(bit, 64)
        word_of_side, side = divmod(word, 2)
        marked.add((side, 64 * word_of_side + bit_of_word))
    return marked


def _check_best(book: OrderBook, instrument: int, levels: list[Level]) -> None:
    best = book.place(instrument).best
    for side in (layout.ASK, layout.BID):
        keys = [level.key for level in levels if level.side == side]
        lowest_key = min(keys, default=book.max_price + 1)
        _claim(int(book.arena[best + side]) == lowest_key, "best is the best level")
    prices = book.best_prices(instrument)
    if book.policy == "price-time":
        _claim(prices.bid < prices.ask, "the book is not crossed")


def _check_unused(book: OrderBook) -> None:
    """Check that nothing was written between state, bitmaps, levels and records, where nobody has memory."""
    levels = 2 * (book.max_price + 2)
    spans = [(0, layout.STATE_WORDS)]
    for instrument in range(book.instruments or 1):
        place = book.place(instrument)
        if book.instruments is not None:
            spans.append((place.best, place.best + 2))
        spans.append((place.summary, place.summary + _summary_words(book)))
        spans.append((place.bitmap, place.bitmap + _bitmap_words(book)))
        first_level = place.first_level // 2
        spans.append((first_level, first_level + 1 + levels))  # one word before the links of the first level
    spans.append((book.first_order // 2, len(book.arena)))
    for (_, end), (following, _) in pairwise(sorted(spans)):
        _claim(not book.arena[end:following].any(), "memory that nobody uses is 0")


def _check_records(book: OrderBook, resting: list[int]) -> None:
    free: list[int] = []
    words = _words(book)
    place = int(book.state[layout.FREE])
    while place != layout.NOTHING and len(free) <= book.capacity:
        free.append(place)
        place = words[place + layout.NEXT]
    expected = range(book.first_order, len(words), layout.RECORD)
    _claim(sorted(free + resting) == list(expected), "every record is free or rests, and only once")


def _check_volume(book: OrderBook, rings: Rings) -> None:
    """Check that both sides traded the same volume: the incoming less the cancelled and the resting volume."""
    traded = {}
    for side in (layout.ASK, layout.BID):
        traded[side] = int(book.state[layout.VOLUME_IN + side] - book.state[layout.VOLUME_CANCELLED + side])
    words = _words(book)
    for level, ring in rings.items():
        traded[level.side] -= sum(words[place + layout.VOLUME] for place in ring)
    _claim(traded[layout.ASK] == traded[layout.BID], "traded ask volume is traded bid volume")


def _check_index(book: OrderBook, rings: Rings) -> None:
    buckets = int(book.state[layout.BUCKETS])
    words = _words(book)
    index = memoryview(book.index)
    indexed: dict[int, tuple[int, int]] = {}
    for bucket in np.flatnonzero(book.index[:buckets]).tolist():
        place = index[bucket]
        while place != layout.NOTHING:
            order_id = words[place + layout.ID]
            _claim(order_id % buckets == bucket and order_id not in indexed, "an id is in its bucket, and only once")
            entry = buckets + place // 2
            indexed[order_id] = place, index[entry + layout.LEVEL]
            place = index[entry]
    resting = {}
    for level, ring in rings.items():
        for place in ring:
            resting[words[place + layout.ID]] = place, level.place
    _claim(indexed == resting, "the index has the resting orders and no other")
