"""The order book: owns the memory that the kernels work in, and answers questions about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from matching_engine import kernels as k
from matching_engine.invariants import check

HIGHEST_PRICE = 0xFFFF - 1  # prices travel as u16, and max price + 1 stands for "no ask"
POLICIES = ("price-time", "exact-price")
HIGHEST_CAPACITY = (1 << 30) // k.RECORD


class RestingOrder(NamedTuple):
    id: int
    price: int  # ticks
    volume: int  # lots


class OrderBook:
    """Resting orders of one instrument by price level and time.

    `capacity` None: the book doubles where it is full. A number: an order that finds it full, and crosses
    nothing, is rejected. `with_ids`: orders can be cancelled, and an id that rests already is rejected; without
    it no id is known, and every cancel is rejected as one of an unknown order.
    """

    first_capacity = 1 << 16

    def __init__(
        self,
        max_price: int = 999,
        policy: str = "price-time",
        capacity: int | None = None,
        with_ids: bool = False,
    ) -> None:
        _refuse_unless(1 <= max_price <= HIGHEST_PRICE, "max_price", max_price, f"1..{HIGHEST_PRICE}")
        _refuse_unless(policy in POLICIES, "policy", policy, " or ".join(POLICIES))
        allowed = capacity is None or 1 <= capacity <= HIGHEST_CAPACITY
        _refuse_unless(allowed, "capacity", capacity, f"1..{HIGHEST_CAPACITY}, or None for a book that grows")
        self.max_price, self.policy, self.with_ids = max_price, policy, with_ids
        self.bounded = capacity is not None
        self.capacity = self.first_capacity if capacity is None else capacity
        self._open()

    def _open(self) -> None:
        limit = self.max_price + 1
        self.first_order = k.RECORD * 2 * (limit + 1)
        self.records = np.zeros(self.first_order + k.RECORD * self.capacity, np.uint32)
        self.occupied = np.zeros(k.BITMAP_WORDS, np.uint64)
        self.state = np.zeros(k.STATE_WORDS, np.int64)
        self.state[[k.BEST, k.BEST + 1, k.LIMIT]] = limit
        self.state[k.EXACT], self.state[k.BOUNDED] = self.policy == "exact-price", self.bounded
        k.open_levels(self.records, self.occupied, limit)
        k.free_records(self.records, self.first_order, self.state)
        self._index()

    def _index(self) -> None:
        """An index of at least four buckets for each order the book can hold: chains stay short."""
        buckets = 1 << (4 * self.capacity - 1).bit_length() if self.with_ids else 0
        self.index = np.zeros(buckets + len(self.records) // 2 if buckets else 1, np.uint32)
        self.state[k.IDS] = buckets
        if buckets:
            k.reindex(self.records, self.occupied, self.index, self.state)

    def grow(self) -> None:
        """Twice the capacity; resting orders stay where they are."""
        full, self.capacity = len(self.records), 2 * self.capacity
        records = np.zeros(self.first_order + k.RECORD * self.capacity, np.uint32)
        records[:full] = self.records
        self.records = records
        k.free_records(records, full, self.state)
        self._index()

    @property
    def best_bid(self) -> int:
        """0 where there is no bid."""
        return self.max_price + 1 - int(self.state[k.BEST + 1])

    @property
    def best_ask(self) -> int:
        """Max price + 1 where there is no ask."""
        return int(self.state[k.BEST])

    def resting(self, side: int) -> list[RestingOrder]:
        """The side's orders, best price first, oldest first within a price. O(levels + orders)."""
        return [order for key in range(1, self.max_price + 1) for order in self._at(side - 1, key)]

    def check(self) -> None:
        """BrokenInvariant where the book contradicts itself. O(levels + capacity)."""
        check(self)

    def _at(self, side: int, key: int) -> Iterator[RestingOrder]:
        level = k.RECORD * (2 * key + side)
        price = key if side == 0 else self.max_price + 1 - key
        place = int(self.records[level + k.NEXT])
        while place != level:
            order_id, volume, following, _ = self.records[place : place + k.RECORD].tolist()
            yield RestingOrder(order_id, price, volume)
            place = following


def _refuse_unless(allowed: bool, field: str, value: object, takes: str) -> None:
    if not allowed:
        raise ValueError(f"{field} is {value!r}: takes {takes}")

