"""Checks every invariant of an order book against its records; tests call it after each step."""

from __future__ import annotations

import numpy as np

from matching_engine import arena as a
from matching_engine.order_book import OrderBook

SUMMARY_WORDS = 2 * 16
"""Words of both sides, each with a bit for every word of the bitmap."""


class BrokenInvariant(AssertionError):
    """The book contradicts itself, which no order may cause."""


def check(book: OrderBook) -> None:
    """Check the book. BrokenInvariant if it contradicts itself. O(levels + capacity)."""
    levels = _rings(book)
    _check_bitmap(book, levels)
    _check_best(book, levels)
    resting = [place for ring in levels.values() for place in ring]
    _check_records(book, resting)
    _check_volume(book, levels)
    if book.with_ids:
        _check_index(book, levels)


def _claim(holds: bool, claim: str) -> None:
    if not holds:
        raise BrokenInvariant(claim)


def _words(book: OrderBook) -> memoryview:
    """Return the records as a memoryview, from which Python reads words three times as fast as from an array."""
    return memoryview(book.records)


def _rings(book: OrderBook) -> dict[int, list[int]]:
    """Return the orders of each level that holds any, oldest first, by the level's place."""
    first = a.FIRST_LEVEL
    count = 2 * (book.max_price + 2)
    links = book.records[first + a.NEXT :][: a.LEVEL_WORDS * count].reshape(count, a.LEVEL_WORDS)
    places = first + a.LEVEL_WORDS * np.arange(count)
    words = _words(book)
    _claim(int(links.min()) >= first, "a level's links are larger than any volume")
    _claim(int(book.records[first + a.VOLUME]) == a.ENDLESS, "so is the word before the first level")
    return {place: _ring(book, words, place) for place in places[links[:, 0] != places].tolist()}


def _ring(book: OrderBook, words: memoryview, level: int) -> list[int]:
    ring: list[int] = []
    earlier, place = level, words[level + a.NEXT]
    first_order, capacity = book.first_order, book.capacity
    while place != level:
        _claim(place >= first_order and len(ring) < capacity, "a level's ring holds orders")
        _claim(words[place + a.PREVIOUS] == earlier, "links lead back the way they came")
        _claim(1 <= words[place + a.VOLUME] <= a.LARGEST_VOLUME, "a resting order has volume")
        ring.append(place)
        earlier, place = place, words[place + a.NEXT]
    _claim(words[level + a.PREVIOUS] == earlier, "a level knows its youngest order")
    return ring


def _side_and_key(level: int) -> tuple[int, int]:
    number = (level - a.FIRST_LEVEL) // a.LEVEL_WORDS
    return number % 2, number // 2


def _check_bitmap(book: OrderBook, levels: dict[int, list[int]]) -> None:
    expected = {(side, book.max_price + 1) for side in (0, 1)} | {_side_and_key(level) for level in levels}
    _claim(_marked(book.arena[a.BITMAP : a.SUMMARY]) == expected, "the bitmap marks the levels that hold orders")
    words = {(side, key >> 6) for side, key in expected}
    _claim(
        _marked(book.arena[a.SUMMARY : a.SUMMARY + SUMMARY_WORDS]) == words,
        "the summary marks the words that are not 0",
    )


def _marked(words: a.Arena) -> set[tuple[int, int]]:
    """Side and number of each bit that is set; the words of the two sides alternate."""
    bits = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    return {(bit >> 6 & 1, bit >> 7 << 6 | bit & 63) for bit in bits.tolist()}


def _check_best(book: OrderBook, levels: dict[int, list[int]]) -> None:
    for side in (0, 1):
        keys = [key for s, key in map(_side_and_key, levels) if s == side]
        _claim(book.state[a.BEST + side] == min(keys, default=book.max_price + 1), "best is the best level")
    if book.policy == "price-time":
        _claim(book.best_bid < book.best_ask, "the book is not crossed")


def _check_records(book: OrderBook, resting: list[int]) -> None:
    free: list[int] = []
    place, words, capacity = int(book.state[a.FREE]), _words(book), book.capacity
    while place != a.NOTHING and len(free) <= capacity:
        free.append(place)
        place = words[place + a.NEXT]
    expected = range(book.first_order, len(words), a.RECORD)
    _claim(sorted(free + resting) == list(expected), "every record is free or rests, once")


def _check_volume(book: OrderBook, levels: dict[int, list[int]]) -> None:
    """Check that both sides traded the same volume: what came in, less what rests or was cancelled."""
    traded = [int(book.state[a.VOLUME_IN + side] - book.state[a.VOLUME_CANCELLED + side]) for side in (0, 1)]
    words = _words(book)
    for level, ring in levels.items():
        traded[_side_and_key(level)[0]] -= sum(words[place + a.VOLUME] for place in ring)
    _claim(traded[a.ASK] == traded[a.BID], "traded ask volume is traded bid volume")


def _check_index(book: OrderBook, levels: dict[int, list[int]]) -> None:
    buckets = int(book.state[a.BUCKETS])
    words = _words(book)
    index = memoryview(book.index)
    indexed: dict[int, tuple[int, int]] = {}
    for bucket in np.flatnonzero(book.index[:buckets]).tolist():
        place = index[bucket]
        while place != a.NOTHING:
            order_id = words[place + a.ID]
            _claim(order_id % buckets == bucket and order_id not in indexed, "an id stands once, in its bucket")
            entry = buckets + place // 2
            indexed[order_id] = place, index[entry + a.LEVEL]
            place = index[entry]
    resting = {words[p + a.ID]: (p, level) for level, ring in levels.items() for p in ring}
    _claim(indexed == resting, "the index knows the resting orders and no other")
