"""Resting orders by id, where the book keeps them: buckets by the id's low bits, chains in each bucket.

The index holds the buckets, then two words for each record: the next record in its bucket, its price level. At least
four buckets an order and ids that count up make chains rare.
"""

from __future__ import annotations

from matching_engine.arena import BUCKETS, ID, NOTHING, Book
from matching_engine.compiled import inlined

LEVEL = 1


@inlined
def bucket_of(book: Book, order_id: int) -> int:
    return order_id & (book.state[BUCKETS] - 1)


@inlined
def entry_of(book: Book, order: int) -> int:
    return book.state[BUCKETS] + order // 2


@inlined
def find(book: Book, order_id: int) -> int:
    """The resting order of that id, or NOTHING."""
    order = book.ids[bucket_of(book, order_id)]
    while order != NOTHING and book.records[order + ID] != order_id:
        order = book.ids[entry_of(book, order)]
    return order


@inlined
def remember(book: Book, order_id: int, order: int, level: int) -> None:
    bucket, entry = bucket_of(book, order_id), entry_of(book, order)
    book.ids[entry], book.ids[entry + LEVEL] = book.ids[bucket], level
    book.ids[bucket] = order


@inlined
def forget(book: Book, order: int) -> None:
    at = bucket_of(book, book.records[order + ID])
    while book.ids[at] != order:
        at = entry_of(book, book.ids[at])
    book.ids[at] = book.ids[entry_of(book, order)]
