"""The order book: it owns the memory in which the kernels work, and lists the orders that rest in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from exchange.allowed import check_registry, one_of, whole
from exchange.compiled import cached_kernel, signed
from exchange.settings import POLICIES
from exchange.workload import MAX_PRICE
from matching_engine import arena as a
from matching_engine.kernels import indexer

HIGHEST_CAPACITY = 1 << 29  # a link is a u32
IS_EXACT = {"price-time": False, "exact-price": True}
"""Each matching policy: whether an order trades at its own price only."""
check_registry("IS_EXACT of matching_engine/order_book.py", IS_EXACT, POLICIES)


class RestingOrder(NamedTuple):
    id: int
    price: int  # ticks
    volume: int  # lots


class Resting(NamedTuple):
    """The total that rests on one side of a book."""

    orders: int
    volume: int  # lots


@cached_kernel(a)
def _count_resting(records: a.Words, limit: int, side: int) -> tuple[int, int]:
    """Count the orders that rest on a side, and their lots."""
    orders = 0
    volume = 0
    for key in range(limit + 1):
        level = a.FIRST_LEVEL + a.LEVEL_WORDS * (2 * key + side)
        place = signed(records[level + a.NEXT])
        while place != level:
            orders += 1
            volume += signed(records[place + a.VOLUME])
            place = signed(records[place + a.NEXT])
    return orders, volume


class OrderBook:
    """Resting orders of one instrument, by price level and time.

    `policy`: "price-time" trades with every price that crosses, "exact-price" with the order's own price only.
    `capacity`: None lets a full book double; with a number, a full book rejects an order that crosses nothing.
    `with_ids`: the book keeps ids, which costs about a tenth of the speed. Resting orders can then be cancelled, and an
    order with the id of a resting order is rejected. Without ids every cancel is rejected: its order is unknown.
    """

    first_capacity = 1 << 18
    """The first capacity of a book that grows. A default run of 1,000,000 orders fits."""

    def __init__(
        self, max_price: int = 999, policy: str = "price-time", capacity: int | None = None, with_ids: bool = False
    ) -> None:
        whole("max_price", max_price, 1, MAX_PRICE)
        one_of("policy", policy, IS_EXACT)
        if capacity is not None:
            whole("capacity", capacity, 1, HIGHEST_CAPACITY)
        self.max_price = max_price
        self.policy = policy
        self.with_ids = with_ids
        self.bounded = capacity is not None
        self.capacity = self.first_capacity if capacity is None else capacity
        self.first_order = a.first_order(max_price + 1)
        self.arena = self._arena()
        a.lay_out(self.arena, max_price + 1, self.bounded)
        a.free_records(self.arena, self.first_order)
        self._index()

    def renewed(self) -> OrderBook:
        """Return an empty book with the same rules."""
        return OrderBook(self.max_price, self.policy, self.capacity if self.bounded else None, self.with_ids)

    def _arena(self) -> a.Arena:
        """Return memory for a book of this capacity."""
        return np.zeros((self.first_order + a.RECORD * self.capacity) // 2, np.uint64)

    def _index(self) -> None:
        """Make the index of the resting orders, with four buckets or more for each order; without ids, an empty one."""
        buckets = 1 << (4 * self.capacity - 1).bit_length() if self.with_ids else 0
        self.state[a.BUCKETS] = buckets
        self.index: a.Words = np.zeros(buckets + len(self.arena) if buckets else 1, np.uint32)
        if buckets:
            indexer()(self.arena, self.index)

    def grow(self) -> None:
        """Double the capacity; every resting order stays where it is. O(capacity)."""
        if self.capacity >= HIGHEST_CAPACITY:
            raise MemoryError(f"the book holds {self.capacity} resting orders, and cannot hold more")
        smaller = self.arena
        self.capacity = 2 * self.capacity
        self.arena = self._arena()
        self.arena[: len(smaller)] = smaller
        a.free_records(self.arena, 2 * len(smaller))
        self._index()

    def load(self, arena: a.Arena) -> None:
        """Take over the memory of a book with the same rules. ValueError if the arena is of another book."""
        capacity, rest = divmod(2 * len(arena) - self.first_order, a.RECORD)
        if rest or capacity < 1 or (self.bounded and capacity != self.capacity):
            raise ValueError(f"an arena of {len(arena)} words is of another book")
        self.arena = arena
        self.capacity = capacity
        self._index()

    @property
    def state(self) -> a.Offsets:
        """The arena's first words, which `arena.py` names."""
        return self.arena[: a.STATE_WORDS].view(np.int64)

    @property
    def records(self) -> a.Words:
        """The arena as 4-byte words, in which links count."""
        return self.arena.view(np.uint32)

    @property
    def best_bid(self) -> int:
        """The highest bid; 0 where there is none. O(1)."""
        return self.max_price + 1 - int(self.state[a.BEST + a.BID])

    @property
    def best_ask(self) -> int:
        """The lowest ask; max price + 1 where there is none. O(1)."""
        return int(self.state[a.BEST + a.ASK])

    def resting(self, side: int) -> list[RestingOrder]:
        """Return the orders of a side (ASK or BID): best price first, then oldest first. O(levels + orders)."""
        keys = np.arange(self.max_price + 2)
        places = a.FIRST_LEVEL + a.LEVEL_WORDS * (2 * keys + side - 1)
        occupied = keys[self.records[places + a.NEXT] != places]
        orders: list[RestingOrder] = []
        for key in occupied.tolist():
            orders.extend(self._level(side - 1, key))
        return orders

    def total_resting(self, side: int) -> Resting:
        """Return the totals of a side without making an object for each order. O(levels + orders)."""
        return Resting(*_count_resting(self.records, self.max_price + 1, side - 1))

    def volume_traded(self, side: int, resting: Resting) -> int:
        """Return the lots of a side that were traded, which must be equal on both sides.

        These are the lots that came in, less the cancelled ones and those that still rest.
        """
        volume_in = int(self.state[a.VOLUME_IN + side - 1])
        volume_cancelled = int(self.state[a.VOLUME_CANCELLED + side - 1])
        return volume_in - volume_cancelled - resting.volume

    def _level(self, side: int, key: int) -> Iterator[RestingOrder]:
        """Yield the orders of a price level, oldest first. `side` is a side within the book."""
        level = a.FIRST_LEVEL + a.LEVEL_WORDS * (2 * key + side)
        price = key if side == a.ASK else self.max_price + 1 - key
        records = self.records
        place = int(records[level + a.NEXT])
        while place != level:
            order_id, volume, following, _ = records[place : place + a.RECORD].tolist()
            yield RestingOrder(order_id, price, volume)
            place = following
