"""How much rests in a book, without a Python object for each order."""

from __future__ import annotations

from typing import NamedTuple

from exchange.kernel_cache import cached_kernel
from matching_engine import arena
from matching_engine.arena import FIRST_LEVEL, LEVEL_WORDS, NEXT, VOLUME, VOLUME_CANCELLED, VOLUME_IN, Words
from matching_engine.compiled import signed
from matching_engine.order_book import OrderBook


class Resting(NamedTuple):
    """Of one side of a book."""

    orders: int
    volume: int  # lots


@cached_kernel(arena)
def _count(records: Words, limit: int, side: int) -> tuple[int, int]:
    orders, volume = 0, 0
    for key in range(limit + 1):
        level = FIRST_LEVEL + LEVEL_WORDS * (2 * key + side)
        place = signed(records[level + NEXT])
        while place != level:
            orders += 1
            volume += signed(records[place + VOLUME])
            place = signed(records[place + NEXT])
    return orders, volume


def resting(book: OrderBook, side: int) -> Resting:
    """What rests on a side, ASK or BID. O(levels + orders)."""
    return Resting(*_count(book.records, book.max_price + 1, side - 1))


def volume_traded(book: OrderBook, side: int, left: Resting) -> int:
    """What came in on that side and neither rests, as `left` has it, nor was cancelled: the same on both sides."""
    state = book.state
    return int(state[VOLUME_IN + side - 1] - state[VOLUME_CANCELLED + side - 1]) - left.volume
