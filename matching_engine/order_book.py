"""The order book: it owns the memory in which the kernels work, and lists the orders that rest in it."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from exchange.allowed import check_registry, one_of, whole
from exchange.instruments import check_instruments
from exchange.messages import Quote
from exchange.settings import POLICIES
from exchange.workload import MAX_PRICE
from matching_engine import arena as layout
from matching_engine.kernels import indexer, resting_counter

HIGHEST_CAPACITY = 1 << 29  # a link is a u32
BYTES_OF_LINK = 4
BYTES_OF_WORD = 8
LARGEST_IN_HUGE_PAGES = 1 << 26
"""The most bytes of all books for which memory may come in huge pages."""
LINKS_PER_WORD = 2
"""The arena is an array of 8-byte words. Links count 4-byte words."""
IS_EXACT = {"price-time": False, "exact-price": True}
"""Each matching policy: whether an order trades at its own price only."""
check_registry("IS_EXACT of matching_engine/order_book.py", IS_EXACT, POLICIES)


class RestingOrder(NamedTuple):
    id: int
    price: int  # ticks
    volume: int  # lots


class RestingTotal(NamedTuple):
    """The number and the volume of the orders that rest on one side of a book."""

    orders: int
    volume: int  # lots


# A price level has a side within the book (0 asks, 1 bids; on the wire 1 and 2) and a key. An ask's key is its price, a
# bid's key is max price + 1 - price, so on either side the lowest key is the best price. `levels.py` has the formulas.


class OrderBook:
    """Resting orders of one instrument, or of several in one memory, by price level and time.

    `policy`: "price-time" trades with every price that crosses, "exact-price" with the order's own price only.
    `capacity`: None lets a full book double; with a number, a full book rejects an order that crosses nothing.
    `with_ids`: the book keeps ids, which costs about a tenth of the speed. Resting orders can then be cancelled, and an
    order with the id of a resting order is rejected. Without ids every cancel is rejected: its order is unknown.
    `instruments`: None for one book, whose answers name no instrument; with a number, a book for each instrument from 0
    on. Capacity, ids and counts are those of all books together.
    """

    first_capacity = 1 << 18
    """The first capacity of a book that grows. A default run of 1,000,000 orders fits."""

    def __init__(
        self,
        max_price: int = 999,
        policy: str = "price-time",
        capacity: int | None = None,
        with_ids: bool = False,
        instruments: int | None = None,
    ) -> None:
        whole("max_price", max_price, 1, MAX_PRICE)
        one_of("policy", policy, IS_EXACT)
        if capacity is not None:
            whole("capacity", capacity, 1, HIGHEST_CAPACITY)
        if instruments is not None:
            check_instruments(instruments, max_price)
        self.max_price = max_price
        self.policy = policy
        self.with_ids = with_ids
        self.bounded = capacity is not None
        self.capacity = self.first_capacity if capacity is None else capacity
        self.instruments = instruments
        self.several = None if instruments is None else layout.SEVERAL
        """The kind of the kernels for this memory."""
        self.first_order = self._first_order()
        self.arena = self._arena()
        self._lay_out()
        layout.free_records(self.arena, self.first_order)
        self._index()

    def renewed(self) -> OrderBook:
        """Return an empty book with the same rules."""
        capacity = self.capacity if self.bounded else None
        return OrderBook(self.max_price, self.policy, capacity, self.with_ids, self.instruments)

    def tiny(self) -> OrderBook:
        """Return a book of the same kind, and with as many instruments, that takes one price and one order."""
        return OrderBook(1, self.policy, capacity=1, with_ids=self.with_ids, instruments=self.instruments)

    def _first_order(self) -> int:
        """Return the link of the first order's record."""
        limit = self.max_price + 1
        if self.instruments is None:
            return layout.first_order(limit)
        return layout.first_order_of_several(limit, self.instruments)

    def _arena(self) -> layout.Arena:
        """Return memory for a book of this capacity.

        Where the books of several instruments have many prices, memory is taken page by page, where it is used. Else it
        may come in huge pages, as numpy asks for, with which books that orders choose at random are much faster.
        """
        links = self.first_order + layout.RECORD * self.capacity
        words = links // LINKS_PER_WORD
        bytes_of_books = BYTES_OF_LINK * self.first_order
        if bytes_of_books <= LARGEST_IN_HUGE_PAGES:
            return np.zeros(words, np.uint64)
        pages = mmap.mmap(-1, words * BYTES_OF_WORD, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return np.frombuffer(pages, np.uint64)

    def _lay_out(self) -> None:
        """Make the books, all empty."""
        limit = self.max_price + 1
        if self.instruments is None:
            layout.lay_out(self.arena, limit, self.bounded)
        else:
            words_of_block = layout.words_of_block(limit)
            layout.lay_out_several(self.arena, limit, self.bounded, self.instruments, words_of_block)

    def _index(self) -> None:
        """Make the index of the resting orders, with four buckets or more for each order. Without ids it is empty."""
        self.index: layout.Words
        if not self.with_ids:
            self.state[layout.BUCKETS] = 0
            self.index = np.zeros(1, np.uint32)  # the kernels take an array, but do not use it
            return
        buckets = _power_of_two_from(4 * self.capacity)
        words_of_records = len(self.arena)  # two words for each record, which is two words of the arena
        self.state[layout.BUCKETS] = buckets
        self.index = np.zeros(buckets + words_of_records, np.uint32)
        indexer(several=self.several)(self.arena, self.index)

    def grow(self) -> None:
        """Double the capacity; every resting order stays where it is. O(capacity)."""
        if self.capacity >= HIGHEST_CAPACITY:
            raise MemoryError(f"the book holds {self.capacity} resting orders, and cannot hold more")
        smaller = self.arena
        self.capacity = 2 * self.capacity
        self.arena = self._arena()
        if self.instruments is None:
            self.arena[: len(smaller)] = smaller
        else:
            layout.copy_used(smaller, self.arena)
        layout.free_records(self.arena, LINKS_PER_WORD * len(smaller))
        self._index()

    def load(self, arena: layout.Arena) -> None:
        """Take over the memory of a book with the same rules. ValueError if the arena has another book's size."""
        links_of_records = LINKS_PER_WORD * len(arena) - self.first_order
        capacity, rest = divmod(links_of_records, layout.RECORD)
        is_no_capacity = rest > 0 or capacity < 1
        is_other_capacity = self.bounded and capacity != self.capacity
        if is_no_capacity or is_other_capacity:
            raise ValueError(f"an arena of {len(arena)} words is of another book")
        self.arena = arena
        self.capacity = capacity
        self._index()

    @property
    def state(self) -> layout.Offsets:
        """The arena's first words, which `arena.py` names."""
        return self.arena[: layout.STATE_WORDS].view(np.int64)

    @property
    def records(self) -> layout.Words:
        """The arena as 4-byte words, in which links count."""
        return self.arena.view(np.uint32)

    @property
    def best_bid(self) -> int:
        """The highest bid of the book alone, or of instrument 0; 0 if there is none. O(1)."""
        return self.best_prices().bid

    @property
    def best_ask(self) -> int:
        """The lowest ask of the book alone, or of instrument 0; max price + 1 if there is none. O(1)."""
        return self.best_prices().ask

    def best_prices(self, instrument: int = 0) -> Quote:
        """Return the best prices of an instrument. O(1)."""
        best = self.place(instrument).best
        ask = int(self.arena[best + layout.ASK])
        bid = self.max_price + 1 - int(self.arena[best + layout.BID])
        return Quote(bid, ask)

    @property
    def occupied_levels(self) -> int:
        """How many price levels hold orders, of all instruments and both sides together. O(prices / 64)."""
        levels = 0
        for instrument in range(self.instruments or 1):
            bitmap = self.place(instrument).bitmap
            words = self.arena[bitmap : bitmap + 2 * ((self.max_price + 1 >> 6) + 1)]
            ends_of_search = 2  # on each side, the bit of key `limit` is always set
            levels += int(np.bitwise_count(words).sum()) - ends_of_search
        return levels

    def place(self, instrument: int) -> layout.Place:
        """Return the place of an instrument's book in the arena. IndexError if there is no such instrument."""
        if not 0 <= instrument < (self.instruments or 1):
            raise IndexError(f"instrument {instrument}: there are {self.instruments or 1}, numbered from 0")
        if self.instruments is None:
            return layout.Place(0, layout.BEST, layout.SUMMARY, layout.BITMAP, layout.FIRST_LEVEL)
        limit = self.max_price + 1
        return layout.place_in_blocks(limit, layout.words_of_block(limit), instrument)

    def resting(self, side: int, instrument: int = 0) -> list[RestingOrder]:
        """Return an instrument's orders of a side (ASK or BID), best price first, oldest first. O(levels + orders)."""
        book_side = side - 1
        first_level = self.place(instrument).first_level
        keys = np.arange(self.max_price + 2)
        levels = first_level + layout.LEVEL_WORDS * (2 * keys + book_side)
        links = self.records[levels + layout.NEXT]
        occupied_keys = keys[(links != levels) & (links != layout.NOTHING)]
        orders: list[RestingOrder] = []
        for key in occupied_keys.tolist():
            orders.extend(self._orders_at(first_level, book_side, key))
        return orders

    def total_resting(self, side: int) -> RestingTotal:
        """Return the totals of a side, of all instruments, without an object for each order. O(levels + orders)."""
        count_resting = resting_counter(several=self.several)
        orders, volume = count_resting(self.arena, self.index, side - 1)
        return RestingTotal(orders, volume)

    def volume_traded(self, side: int, resting: RestingTotal) -> int:
        """Return the lots of a side that were traded, which must be equal on both sides.

        These are the lots that came in, less the cancelled ones and those that still rest.
        """
        book_side = side - 1
        volume_in = int(self.state[layout.VOLUME_IN + book_side])
        volume_cancelled = int(self.state[layout.VOLUME_CANCELLED + book_side])
        return volume_in - volume_cancelled - resting.volume

    def _orders_at(self, first_level: int, book_side: int, key: int) -> Iterator[RestingOrder]:
        """Yield the orders of a price level, oldest first."""
        level = first_level + layout.LEVEL_WORDS * (2 * key + book_side)
        price = key if book_side == layout.ASK else self.max_price + 1 - key
        records = self.records
        place = int(records[level + layout.NEXT])
        while place != level:
            order_id, volume, following, _previous = records[place : place + layout.RECORD].tolist()
            yield RestingOrder(order_id, price, volume)
            place = following


def _power_of_two_from(number: int) -> int:
    """Return the lowest power of two that is `number` or more."""
    return 1 << (number - 1).bit_length()
