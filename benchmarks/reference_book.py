"""The matching rule once more, as plainly as it can be written.

Tests and `python -m benchmarks matching` compare the compiled book with it. Messages in, messages out; price levels in
sorted dictionaries, orders in queues.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from sortedcontainers import SortedDict

from exchange.messages import ASK, BID, Cancel, Cancelled, Confirmation, Message, Order, Quote, Rejection, Trade


@dataclass
class ReferenceOrder:
    id: int
    side: int
    price: int  # ticks
    volume: int  # lots


class ReferenceBook:
    """Takes the settings of an `OrderBook`, and answers as it does."""

    def __init__(
        self, max_price: int = 999, policy: str = "price-time", capacity: int | None = None, with_ids: bool = False
    ) -> None:
        self.max_price, self.policy, self.capacity, self.with_ids = max_price, policy, capacity, with_ids
        self.levels: dict[int, SortedDict] = {ASK: SortedDict(), BID: SortedDict()}
        self.by_id: dict[int, ReferenceOrder] = {}
        self.resting_count = 0

    def handle(self, message: Order | Cancel) -> list[Message]:
        """The answers to one message, in order."""
        return self._order(message) if isinstance(message, Order) else self._cancel(message)

    @property
    def best_bid(self) -> int:
        return self.levels[BID].peekitem(-1)[0] if self.levels[BID] else 0

    @property
    def best_ask(self) -> int:
        return self.levels[ASK].peekitem(0)[0] if self.levels[ASK] else self.max_price + 1

    def quote(self) -> Quote:
        return Quote(bid=self.best_bid, ask=self.best_ask)

    def resting(self, side: int) -> list[ReferenceOrder]:
        """Best price first, oldest first within a price."""
        levels = self.levels[side]
        prices = levels if side == ASK else reversed(levels)
        return [order for price in prices for order in levels[price]]

    def _order(self, order: Order) -> list[Message]:
        reason = self._objection(order)
        if reason:
            return [Rejection(order.id, reason)]
        before, answers = self.quote(), list[Message]()
        remaining = self._match(order, answers)
        if remaining:
            self._rest(order, remaining)
        if self.quote() != before:
            answers.append(self.quote())
        if remaining == order.volume:
            answers.append(Confirmation(order.id))
        return answers

    def _objection(self, order: Order) -> int:
        if order.side not in (ASK, BID):
            return 1
        if not 1 <= order.price <= self.max_price:
            return 2
        if order.volume == 0:
            return 3
        if self.with_ids and order.id in self.by_id:
            return 5
        if self.resting_count == self.capacity and self._price_to_trade_at(order) is None:
            return 4
        return 0

    def _price_to_trade_at(self, order: Order) -> int | None:
        """The opposite price at which the order would trade next; None where it crosses nothing."""
        if self.policy == "exact-price":
            opposite = self.levels[BID if order.side == ASK else ASK]
            return order.price if order.price in opposite else None
        if order.side == BID:
            return self.best_ask if self.best_ask <= order.price else None
        return self.best_bid if self.best_bid >= order.price else None

    def _match(self, order: Order, answers: list[Message]) -> int:
        remaining = order.volume
        while remaining and (price := self._price_to_trade_at(order)) is not None:
            traded = self._trade_at(price, BID if order.side == ASK else ASK, remaining, answers)
            answers.append(Trade(order.id, price, traded))
            remaining -= traded
        return remaining

    def _trade_at(self, price: int, side: int, volume: int, answers: list[Message]) -> int:
        """Trade with the resting orders of one price level, oldest first. Returns the volume traded."""
        queue, traded = self.levels[side][price], 0
        while queue and traded < volume:
            resting = queue[0]
            lots = min(resting.volume, volume - traded)
            answers.append(Trade(resting.id, price, lots))
            resting.volume -= lots
            traded += lots
            if not resting.volume:
                self._take_out(resting)
        return traded

    def _rest(self, order: Order, volume: int) -> None:
        resting = ReferenceOrder(order.id, order.side, order.price, volume)
        self.levels[order.side].setdefault(order.price, deque()).append(resting)
        self.resting_count += 1
        if self.with_ids:
            self.by_id[order.id] = resting

    def _take_out(self, resting: ReferenceOrder) -> None:
        queue = self.levels[resting.side][resting.price]
        queue.remove(resting)
        if not queue:
            del self.levels[resting.side][resting.price]
        self.resting_count -= 1
        self.by_id.pop(resting.id, None)

    def _cancel(self, cancel: Cancel) -> list[Message]:
        resting = self.by_id.get(cancel.id)
        if resting is None:
            return [Rejection(cancel.id, 6)]
        before = self.quote()
        self._take_out(resting)
        moved = [self.quote()] if self.quote() != before else []
        return [*moved, Cancelled(cancel.id, resting.volume)]
