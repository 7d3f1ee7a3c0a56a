"""Every invariant of an order book, derived anew from its records: what tests call after each step."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from matching_engine import kernels as k

if TYPE_CHECKING:
    from matching_engine.order_book import OrderBook


class BrokenInvariant(AssertionError):
    """The book's own fault, never an order's."""


def check(book: OrderBook) -> None:
    """BrokenInvariant where the book contradicts itself. O(levels + capacity)."""
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


def _rings(book: OrderBook) -> dict[int, list[int]]:
    """The orders of each level that holds any, oldest first, by the level's place."""
    heads = book.records[: book.first_order].reshape(-1, k.RECORD)
    places = k.RECORD * np.arange(len(heads))
    _claim(bool((heads[:, k.VOLUME] == k.ENDLESS).all()), "a level's volume ends every walk")
    return {place: _ring(book, place) for place in places[heads[:, k.NEXT] != places].tolist()}


def _ring(book: OrderBook, level: int) -> list[int]:
    ring, earlier, place = [], level, int(book.records[level + k.NEXT])
    while place != level:
        _claim(place >= book.first_order and len(ring) < book.capacity, "a level's ring holds orders")
        _claim(int(book.records[place + k.PREVIOUS]) == earlier, "links lead back the way they came")
        _claim(1 <= book.records[place + k.VOLUME] <= k.LARGEST_VOLUME, "a resting order has volume")
        ring.append(place)
        earlier, place = place, int(book.records[place + k.NEXT])
    _claim(int(book.records[level + k.PREVIOUS]) == earlier, "a level knows its youngest order")
    return ring


def _side_and_key(level: int) -> tuple[int, int]:
    return level // k.RECORD % 2, level // k.RECORD // 2


def _check_bitmap(book: OrderBook, levels: dict[int, list[int]]) -> None:
    expected = {(side, book.max_price + 1) for side in (0, 1)} | {_side_and_key(level) for level in levels}
    _claim(_marked(book.occupied[: k.SUMMARY]) == expected, "the bitmap marks the levels that hold orders")
    words = {(side, key >> 6) for side, key in expected}
    _claim(_marked(book.occupied[k.SUMMARY :]) == words, "the summary marks the words that are not 0")


def _marked(words: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> set[tuple[int, int]]:
    """Side and number of each bit that is set, in words of alternating sides."""
    bits = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    return {(bit >> 6 & 1, bit >> 7 << 6 | bit & 63) for bit in bits.tolist()}


def _check_best(book: OrderBook, levels: dict[int, list[int]]) -> None:
    for side in (0, 1):
        keys = [key for s, key in map(_side_and_key, levels) if s == side]
        _claim(book.state[k.BEST + side] == min(keys, default=book.max_price + 1), "best is the best level")
    if book.policy == "price-time":
        _claim(book.best_bid < book.best_ask, "the book is not crossed")


def _check_records(book: OrderBook, resting: list[int]) -> None:
    free, place = [], int(book.state[k.FREE])
    while place != k.NOTHING and len(free) <= book.capacity:
        free.append(place)
        place = int(book.records[place + k.NEXT])
    expected = Counter(range(book.first_order, len(book.records), k.RECORD))
    _claim(Counter(free + resting) == expected, "every record is free or rests, once")


def _check_volume(book: OrderBook, levels: dict[int, list[int]]) -> None:
    resting = [0, 0]
    for level, ring in levels.items():
        resting[_side_and_key(level)[0]] += sum(int(book.records[place + k.VOLUME]) for place in ring)
    for side in (0, 1):
        taken, cancelled = book.state[k.VOLUME_IN + side], book.state[k.VOLUME_CANCELLED + side]
        accounted = book.state[k.VOLUME_TRADED] + cancelled + resting[side]
        _claim(taken == accounted, "volume in is volume traded, cancelled and resting, on each side")


def _check_index(book: OrderBook, levels: dict[int, list[int]]) -> None:
    buckets, found = int(book.state[k.IDS]), {}
    for bucket in np.flatnonzero(book.index[:buckets]).tolist():
        place = int(book.index[bucket])
        while place != k.NOTHING:
            order_id = int(book.records[place + k.ID])
            _claim(order_id % buckets == bucket and order_id not in found, "an id stands once, in its bucket")
            entry = buckets + place // 2
            found[order_id] = place, int(book.index[entry + k.LEVEL])
            place = int(book.index[entry])
    resting = {int(book.records[p + k.ID]): (p, level) for level, ring in levels.items() for p in ring}
    _claim(found == resting, "the index knows the resting orders and no other")
