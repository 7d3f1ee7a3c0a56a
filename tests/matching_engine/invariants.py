"""Checks every invariant of an order book against its records. Tests call `check` after each step."""

from __future__ import annotations

from itertools import chain

import numpy as np

from matching_engine import arena as layout
from matching_engine.order_book import OrderBook

SUMMARY_WORDS = 2 * 16
"""Words of both sides, each with a bit for every word of the bitmap."""


class BrokenInvariant(AssertionError):
    """The book contradicts itself."""


def check(book: OrderBook) -> None:
    """Check the book. BrokenInvariant if it contradicts itself. O(levels + capacity)."""
    levels = _rings(book)
    _check_bitmap(book, levels)
    _check_best(book, levels)
    resting = list(chain.from_iterable(levels.values()))
    _check_records(book, resting)
    _check_volume(book, levels)
    if book.with_ids:
        _check_index(book, levels)


def _claim(holds: bool, claim: str) -> None:
    """Raise BrokenInvariant with this claim unless it holds."""
    if not holds:
        raise BrokenInvariant(claim)


def _words(book: OrderBook) -> memoryview:
    """Return the records as a memoryview, from which Python reads words three times as fast as from an array."""
    return memoryview(book.records)


def _rings(book: OrderBook) -> dict[int, list[int]]:
    """Return the orders of each level that holds any, oldest first, by the level's place."""
    first = layout.FIRST_LEVEL
    count = 2 * (book.max_price + 2)
    first_link = first + layout.NEXT
    links = book.records[first_link : first_link + layout.LEVEL_WORDS * count].reshape(count, layout.LEVEL_WORDS)
    places = first + layout.LEVEL_WORDS * np.arange(count)
    words = _words(book)
    _claim(int(links.min()) >= first, "a level's links are larger than any volume")
    _claim(
        int(book.records[first + layout.VOLUME]) == layout.ENDLESS,
        "the word before the first level is larger than any volume",
    )
    next_links = links[:, 0]
    occupied = places[next_links != places]  # the next link of an empty level is the level itself
    return {level: _ring(book, words, level) for level in occupied.tolist()}


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


def _side_and_key(level: int) -> tuple[int, int]:
    """Return the side (0 asks, 1 bids) and the key of a level."""
    number = (level - layout.FIRST_LEVEL) // layout.LEVEL_WORDS
    return number % 2, number // 2


def _check_bitmap(book: OrderBook, levels: dict[int, list[int]]) -> None:
    expected = {_side_and_key(level) for level in levels}
    expected |= {(0, book.max_price + 1), (1, book.max_price + 1)}  # the end of every search
    _claim(
        _marked(book.arena[layout.BITMAP : layout.SUMMARY]) == expected, "the bitmap marks the levels that hold orders"
    )
    expected_words = {(side, key >> 6) for side, key in expected}
    summary = book.arena[layout.SUMMARY : layout.SUMMARY + SUMMARY_WORDS]
    _claim(_marked(summary) == expected_words, "the summary marks the words that are not 0")


def _marked(words: layout.Arena) -> set[tuple[int, int]]:
    """Return the side and the number of each bit that is set. The 64-bit words of the two sides alternate."""
    bits = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    marked = set()
    for bit in bits.tolist():
        word, bit_of_word = divmod(bit, 64)
        word_of_side, side = divmod(word, 2)
        marked.add((side, 64 * word_of_side + bit_of_word))
    return marked


def _check_best(book: OrderBook, levels: dict[int, list[int]]) -> None:
    for side in (0, 1):
        keys = [key for side_of_level, key in map(_side_and_key, levels) if side_of_level == side]
        lowest_key = min(keys, default=book.max_price + 1)
        _claim(book.state[layout.BEST + side] == lowest_key, "best is the best level")
    if book.policy == "price-time":
        _claim(book.best_bid < book.best_ask, "the book is not crossed")


def _check_records(book: OrderBook, resting: list[int]) -> None:
    free: list[int] = []
    words = _words(book)
    place = int(book.state[layout.FREE])
    while place != layout.NOTHING and len(free) <= book.capacity:
        free.append(place)
        place = words[place + layout.NEXT]
    expected = range(book.first_order, len(words), layout.RECORD)
    _claim(sorted(free + resting) == list(expected), "every record is free or rests, and only once")


def _check_volume(book: OrderBook, levels: dict[int, list[int]]) -> None:
    """Check that both sides traded the same volume: the incoming less the cancelled and the resting volume."""
    traded = {}
    for side in (layout.ASK, layout.BID):
        traded[side] = int(book.state[layout.VOLUME_IN + side] - book.state[layout.VOLUME_CANCELLED + side])
    words = _words(book)
    for level, ring in levels.items():
        side, _ = _side_and_key(level)
        traded[side] -= sum(words[place + layout.VOLUME] for place in ring)
    _claim(traded[layout.ASK] == traded[layout.BID], "traded ask volume is traded bid volume")


def _check_index(book: OrderBook, levels: dict[int, list[int]]) -> None:
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
    for level, ring in levels.items():
        for place in ring:
            resting[words[place + layout.ID]] = place, level
    _claim(indexed == resting, "the index has the resting orders and no other")
