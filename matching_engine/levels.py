"""Price levels by key, so that the same code serves both sides.

A side is ASK or BID of matching_engine.arena, 0 or 1. An ask's key is its price; a bid's key is `limit - price`, where
limit = max price + 1. On either side the lowest key is the best price, and an incoming order reaches every opposite key
up to the key of its own price. Key `limit` stands for "no order": its bit is always set, so every search ends, and its
price is what a quote says for an empty side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exchange.compiled import inlined, trailing_zeros
from matching_engine.arena import (
    BID,
    LEVEL_WORDS,
    Book,
    best_of,
    bit,
    bitmap_word,
    first_level,
    set_best,
    summary_word,
)


@inlined
def key_of(book: Book, side: int, price: int) -> int:
    """Return the key of a price, or the price of a key: the function is its own inverse."""
    return book.limit - price if side == BID else price


@inlined
def level_of(book: Book, side: int, key: int) -> int:
    """The link to a price level."""
    return first_level(book.place) + LEVEL_WORDS * (2 * key + side)


@inlined
def side_and_key_of(book: Book, level: int) -> tuple[int, int]:
    number = (level - first_level(book.place)) // LEVEL_WORDS
    return number & 1, number >> 1


@inlined
def mark_occupied(book: Book, side: int, key: int) -> None:
    """Set the bits of the level and of its word in the summary, even if they are set: a test first would cost more."""
    word = key >> 6
    book.bitmap[bitmap_word(book.place) + 2 * word + side] |= bit(key)
    book.bitmap[summary_word(book.place) + 2 * (word >> 6) + side] |= bit(word)


@inlined
def mark_empty(book: Book, side: int, key: int) -> None:
    """Clear the level's bit, and that of its word in the summary if the word becomes 0."""
    word = key >> 6
    at = bitmap_word(book.place) + 2 * word + side
    left = book.bitmap[at] & ~bit(key)
    book.bitmap[at] = left
    if left == 0:
        book.bitmap[summary_word(book.place) + 2 * (word >> 6) + side] &= ~bit(word)


@inlined
def _bits_from(words: Any, at: int, first: int) -> Any:
    """The bits of word `at` from number `first` on, shifted down to bit 0."""
    return words[at] >> np.uint64(first & 63)


@inlined
def first_occupied(book: Book, side: int, key: int) -> int:
    """Return the lowest occupied key from `key` on; `limit` if no such level holds orders."""
    bitmap = bitmap_word(book.place)
    word = key >> 6
    bits = _bits_from(book.bitmap, bitmap + 2 * word + side, key)
    if bits:
        return key + trailing_zeros(bits)
    word = _first_word(book, side, word + 1)
    return (word << 6) + trailing_zeros(book.bitmap[bitmap + 2 * word + side])


@inlined
def _first_word(book: Book, side: int, word: int) -> int:
    """Return the number of the first word of the bitmap from `word` on that is not 0."""
    summary = summary_word(book.place)
    group = word >> 6
    bits = _bits_from(book.bitmap, summary + 2 * group + side, word)
    if bits:
        return word + trailing_zeros(bits)
    group += 1
    while book.bitmap[summary + 2 * group + side] == 0:
        group += 1
    return (group << 6) + trailing_zeros(book.bitmap[summary + 2 * group + side])


@inlined
def first_crossing(book: Book, side: int, reach: int) -> int:
    """Return the key at which an incoming order trades first on this side; a key beyond `reach` if there is none.

    With the policy exact-price the order trades at `reach` only, so the search begins there.
    """
    if book.exact:
        return first_occupied(book, side, reach)
    return best_of(book, side)


@inlined
def remove_level(book: Book, side: int, key: int) -> tuple[int, bool]:
    """Mark a level as empty, once its last order has left.

    Returns the next occupied key, and whether the best price moved to it.
    """
    mark_empty(book, side, key)
    following = first_occupied(book, side, key)
    moved = best_of(book, side) == key
    if moved:
        set_best(book, side, following)
    return following, moved
