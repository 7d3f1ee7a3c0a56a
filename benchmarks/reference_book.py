"""The matching rule once more, written as plainly as possible.

Tests and `python -m benchmarks matching` compare the compiled book with this book. It takes messages and returns
messages. Price levels are in sorted dictionaries, and the orders of a level in a queue.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from sortedcontainers import SortedDict

from exchange.market_ids import gateway_of
from exchange.messages import (
    ASK,
    BID,
    FILL_OR_KILL,
    LIMIT,
    MARKET,
    POST_ONLY,
    Cancel,
    Cancelled,
    CancelRequest,
    Confirmation,
    InstrumentOrder,
    InstrumentQuote,
    Message,
    Order,
    Quote,
    Rejection,
    Replaced,
    ReplaceRequest,
    Trade,
    TypedOrder,
)

RESTING_TYPES = (LIMIT, POST_ONLY)


@dataclass
class ReferenceOrder:
    id: int
    side: int
    price: int  # ticks
    volume: int  # lots


class RestingOrders:
    """The resting orders of all books that share a capacity, by id. Without ids `by_id` stays empty."""

    def __init__(self) -> None:
        self.by_id: dict[int, ReferenceOrder] = {}
        self.count = 0


class ReferenceBook:
    """Takes the settings of an `OrderBook`, and gives the same answers; with `is_shared`, those of a shared engine."""

    def __init__(
        self,
        max_price: int = 999,
        policy: str = "price-time",
        capacity: int | None = None,
        with_ids: bool = False,
        is_shared: bool = False,
        orders: RestingOrders | None = None,
    ) -> None:
        self.orders = orders or RestingOrders()
        self.max_price = max_price
        self.policy = policy
        self.capacity = capacity
        self.with_ids = with_ids
        self.is_shared = is_shared
        self.levels: dict[int, SortedDict] = {ASK: SortedDict(), BID: SortedDict()}

    def handle(self, message: Order | Cancel | TypedOrder | ReplaceRequest | CancelRequest) -> list[Message]:
        """The answers to one message, in order."""
        if isinstance(message, Order):
            return self._order(TypedOrder(*message, LIMIT))
        if isinstance(message, TypedOrder):
            return self._order(message)
        if isinstance(message, ReplaceRequest):
            return self._replace(message)
        if isinstance(message, CancelRequest):
            return self._cancel(message.order_id, message.id)
        return self._cancel(message.id, message.id)

    @property
    def best_bid(self) -> int:
        return self.levels[BID].peekitem(-1)[0] if self.levels[BID] else 0

    @property
    def best_ask(self) -> int:
        return self.levels[ASK].peekitem(0)[0] if self.levels[ASK] else self.max_price + 1

    def quote(self) -> Quote:
        return Quote(bid=self.best_bid, ask=self.best_ask)

    def resting(self, side: int) -> list[ReferenceOrder]:
        """The resting orders of a side: best price first, oldest first within a price."""
        levels = self.levels[side]
        best_first = levels if side == ASK else reversed(levels)
        orders: list[ReferenceOrder] = []
        for price in best_first:
            orders += levels[price]
        return orders

    def _order(self, order: TypedOrder) -> list[Message]:
        reason = self._objection(order)
        if reason:
            return [Rejection(order.id, reason)]
        if order.order_type == MARKET:
            order = order._replace(price=self._last_price(order.side))
        if order.order_type == FILL_OR_KILL and self._volume_in_reach(order) < order.volume:
            return [Cancelled(order.id, order.volume)]
        quote_before = self.quote()
        answers: list[Message] = []
        remaining = self._match(order, answers)
        if remaining and order.order_type in RESTING_TYPES:
            self._rest(order, remaining)
        if self.quote() != quote_before:
            answers.append(self.quote())
        if remaining and order.order_type not in RESTING_TYPES:
            answers.append(Cancelled(order.id, remaining))
        elif remaining == order.volume:
            answers.append(Confirmation(order.id))
        return answers

    def _last_price(self, side: int) -> int:
        """The last price at which an incoming order on this side can trade."""
        return self.max_price if side == BID else 1

    def _volume_in_reach(self, order: TypedOrder) -> int:
        """The volume that rests at the prices at which the order may trade."""
        levels = self.levels[BID if order.side == ASK else ASK]
        volume = 0
        for price, queue in levels.items():
            better = price <= order.price if order.side == BID else price >= order.price
            if price == order.price or (better and self.policy == "price-time"):
                volume += sum(resting.volume for resting in queue)
        return volume

    def _objection(self, order: TypedOrder) -> int:
        """The reason of the rejection; 0 if the order is accepted."""
        if order.side not in (ASK, BID):
            return 1
        is_market = order.order_type == MARKET
        if not LIMIT <= order.order_type <= POST_ONLY or (is_market and self.policy == "exact-price"):
            return 7
        if is_market and order.price != 0:
            return 2
        if is_market:
            order = order._replace(price=self._last_price(order.side))
        return self._objection_to_fields(order) or self._objection_to_trading(order)

    def _objection_to_fields(self, order: TypedOrder) -> int:
        """The reason to reject the order for what it says; 0 if there is none."""
        if not 1 <= order.price <= self.max_price:
            return 2
        if order.volume == 0:
            return 3
        if self.with_ids and order.id in self.orders.by_id:
            return 5
        return 0

    def _objection_to_trading(self, order: TypedOrder) -> int:
        """The reason to reject the order for what rests; 0 if there is none."""
        would_trade = self._price_to_trade_at(order) is not None
        if order.order_type == POST_ONLY and would_trade:
            return 8
        if order.order_type == MARKET and not would_trade:
            return 9
        is_full = self.orders.count == self.capacity
        if is_full and not would_trade and order.order_type in RESTING_TYPES:
            return 4
        return 0

    def _price_to_trade_at(self, order: TypedOrder) -> int | None:
        """The opposite price at which the order would trade next; None if it crosses nothing."""
        if self.policy == "exact-price":
            opposite = self.levels[BID if order.side == ASK else ASK]
            return order.price if order.price in opposite else None
        if order.side == BID:
            return self.best_ask if self.best_ask <= order.price else None
        return self.best_bid if self.best_bid >= order.price else None

    def _match(self, order: TypedOrder, answers: list[Message]) -> int:
        """Trade the order as far as it crosses; returns the volume that remains."""
        opposite_side = BID if order.side == ASK else ASK
        remaining = order.volume
        price = self._price_to_trade_at(order)
        while remaining and price is not None:
            traded = self._trade_at(price, opposite_side, remaining, answers)
            answers.append(Trade(order.id, price, traded))
            remaining -= traded
            price = self._price_to_trade_at(order)
        return remaining

    def _trade_at(self, price: int, side: int, volume: int, answers: list[Message]) -> int:
        """Trade with the resting orders of one price level, oldest first. Returns the volume traded."""
        queue = self.levels[side][price]
        traded = 0
        while queue and traded < volume:
            resting = queue[0]
            lots = min(resting.volume, volume - traded)
            answers.append(Trade(resting.id, price, lots))
            resting.volume -= lots
            traded += lots
            if not resting.volume:
                self._take_out(resting)
        return traded

    def _rest(self, order: TypedOrder, volume: int) -> None:
        resting = ReferenceOrder(order.id, order.side, order.price, volume)
        self.levels[order.side].setdefault(order.price, deque()).append(resting)
        self.orders.count += 1
        if self.with_ids:
            self.orders.by_id[order.id] = resting

    def _take_out(self, resting: ReferenceOrder) -> None:
        queue = self.levels[resting.side][resting.price]
        queue.remove(resting)
        if not queue:
            del self.levels[resting.side][resting.price]
        self.orders.count -= 1
        self.orders.by_id.pop(resting.id, None)

    def _is_anothers(self, request_id: int, order_id: int) -> bool:
        """Whether a request names an order of another gateway than its own."""
        return self.is_shared and gateway_of(request_id) != gateway_of(order_id)

    def _cancel(self, order_id: int, answer_id: int) -> list[Message]:
        if self._is_anothers(answer_id, order_id):
            return [Rejection(answer_id, 10)]
        resting = self.orders.by_id.get(order_id)
        if resting is None:
            return [Rejection(answer_id, 6)]
        quote_before = self.quote()
        self._take_out(resting)
        answers: list[Message] = []
        if self.quote() != quote_before:
            answers.append(self.quote())
        answers.append(Cancelled(answer_id, resting.volume))
        return answers

    def _replace(self, replace: ReplaceRequest) -> list[Message]:
        if self._is_anothers(replace.id, replace.order_id):
            return [Rejection(replace.id, 10)]
        resting = self.orders.by_id.get(replace.order_id)
        if resting is None:
            return [Rejection(replace.id, 6)]
        if not 1 <= replace.price <= self.max_price:
            return [Rejection(replace.id, 2)]
        if replace.volume == 0:
            return [Rejection(replace.id, 3)]
        if replace.price == resting.price and replace.volume <= resting.volume:
            resting.volume = replace.volume
            return [Replaced(replace.id, replace.price, replace.volume)]
        quote_before = self.quote()
        answers: list[Message] = []
        self._take_out(resting)
        order = TypedOrder(replace.order_id, resting.side, replace.price, replace.volume, LIMIT)
        remaining = self._match(order, answers)
        if remaining:
            self._rest(order, remaining)
        if self.quote() != quote_before:
            answers.append(self.quote())
        return [*answers, Replaced(replace.id, replace.price, remaining)]


class ReferenceBooks:
    """A book for each instrument from 0 on: a list of reference books, whose answers name the instrument in quotes.

    A request names an order of any instrument. An order without an instrument is of instrument 0.
    """

    def __init__(self, instruments: int, **settings: Any) -> None:
        self.orders = RestingOrders()
        self.books = [ReferenceBook(orders=self.orders, **settings) for _ in range(instruments)]

    def handle(
        self, message: Order | Cancel | TypedOrder | ReplaceRequest | CancelRequest | InstrumentOrder
    ) -> list[Message]:
        """Return the answers to one message, in order."""
        if isinstance(message, InstrumentOrder):
            if message.instrument >= len(self.books):
                return [Rejection(message.id, 11)]
            order = TypedOrder(message.id, *message[2:])
            return self._answers(message.instrument, order)
        return self._answers(self._instrument_of(message), message)

    def _instrument_of(self, message: Order | Cancel | TypedOrder | ReplaceRequest | CancelRequest) -> int:
        """Return the instrument of the order that a request names; 0 for an order, or if no such order rests."""
        if isinstance(message, Order | TypedOrder):
            return 0
        named = message.id if isinstance(message, Cancel) else message.order_id
        resting = self.orders.by_id.get(named)
        for instrument, book in enumerate(self.books):
            if resting is not None and any(order is resting for order in book.resting(resting.side)):
                return instrument
        return 0

    def _answers(
        self, instrument: int, message: Order | Cancel | TypedOrder | ReplaceRequest | CancelRequest
    ) -> list[Message]:
        answers: list[Message] = []
        for answer in self.books[instrument].handle(message):
            answers.append(InstrumentQuote(instrument, *answer) if isinstance(answer, Quote) else answer)
        return answers
