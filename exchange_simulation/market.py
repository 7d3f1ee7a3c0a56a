"""The order stream and the matching engine alone: numpy arrays in, numpy arrays out, and no transport between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exchange.allowed import whole
from exchange.messages import (
    ASK,
    BID,
    LAYOUTS,
    Cancelled,
    Confirmation,
    MalformedMessage,
    Message,
    Order,
    Quote,
    Rejection,
    Replaced,
    Trade,
    records_of,
)
from exchange.scheduled_load import MAX_ORDERS
from exchange.settings import RunSettings
from gateway.seeded_orders import SeededOrders
from matching_engine import order_book
from matching_engine.encoding import ANSWER_SIZES
from matching_engine.engine import EngineCounts, MatchingEngine
from matching_engine.order_book import RestingOrder
from matching_engine.tape import match_tape, offsets_of
from transports.frames import Bytes

Records = npt.NDArray[np.void]
"""A structured array of messages of one kind, with the fields of its class in `exchange.messages`.

Fields of an order: type, id, side (1 ask, 2 bid), price in ticks, volume in lots.
"""
ORDER = LAYOUTS[Order].dtype
"""The type of an array of orders."""


def orders(
    seed: int = 1,
    count: int = 80_000,
    prices: tuple[int, int] = (450, 549),
    price_model: str = "uniform",
    first_id: int = 1,
    max_price: int = 999,
) -> Records:
    """Return the orders that a gateway with this seed offers: `count` of them, from the id `first_id` on.

    For example: `orders(count=1000)["price"].mean()`.

    `prices` are the lowest and the highest price, and `max_price` is the highest price of the book, in ticks.
    `price_model` is a value of --price-model. ValueError names a bad argument.
    """
    settings = RunSettings(seed=seed, prices=prices, price_model=price_model, max_price=max_price)
    whole("first_id", first_id, 1, MAX_ORDERS)
    whole("count", count, 0, MAX_ORDERS + 1 - first_id)
    stream = SeededOrders.of(settings).records(first_id, count)
    return np.frombuffer(bytearray(stream), ORDER)


@dataclass(frozen=True, repr=False)
class Answers:
    """The engine's answers by kind, each kind in the order in which the engine gave them. `id` is the order's id."""

    trades: Records
    confirmations: Records
    quotes: Records
    rejections: Records
    cancelled: Records
    replaced: Records

    def __repr__(self) -> str:
        """For example: <Answers: 1,430 trades, 611 confirmations, 702 quotes>"""
        counts = [f"{len(records):,} {kind}" for kind, records in vars(self).items() if len(records)]
        return f"<Answers: {', '.join(counts) or 'none'}>"


class OrderBook:
    """The book of one instrument, and the engine that matches orders in it.

    For example: `OrderBook().match(orders()).trades`.

    `max_price`   the highest price, in ticks
    `policy`      "price-time"; or "exact-price": orders trade at their own price only
    `capacity`    how many orders may rest; None lets the book grow
    `with_ids`    the book refuses an order if an order with its id rests in it
    ValueError names a bad argument.
    """

    def __init__(
        self, max_price: int = 999, policy: str = "price-time", capacity: int | None = None, with_ids: bool = False
    ) -> None:
        self._book = order_book.OrderBook(max_price, policy, capacity, with_ids)
        self._engine = MatchingEngine(self._book)

    def match(self, stream: Records | Bytes | bytes | bytearray | memoryview) -> Answers:
        """Match the orders one after the other. Returns the answers to them.

        `stream`: orders as `orders` returns them; or the content of a tape, as bytes or as an array of uint8, with any
        order types, cancels and replaces. MalformedMessage if it is neither.
        """
        tape = _tape_of(stream)
        if len(tape) == 0:
            return _by_kind(np.zeros(0, np.uint8))
        buffers: list[Bytes] = []

        def keep(answers: Bytes) -> None:
            buffers.append(answers.copy())

        match_tape(self._engine, tape, keep)
        return _by_kind(np.concatenate(buffers))

    @property
    def counts(self) -> EngineCounts:
        """The number of messages of each kind since the book was made."""
        return self._engine.counts

    @property
    def best_bid(self) -> int | None:
        """The highest bid in ticks, None if there is none."""
        return self._book.best_bid or None  # the book has 0 for no bid

    @property
    def best_ask(self) -> int | None:
        """The lowest ask in ticks, None if there is none."""
        best = self._book.best_ask
        return best if best <= self._book.max_price else None  # the book has a higher price for no ask

    @property
    def bids(self) -> list[RestingOrder]:
        """The resting bids, best price first, oldest first within a price."""
        return self._book.resting(BID)

    @property
    def asks(self) -> list[RestingOrder]:
        """The resting asks, best price first, oldest first within a price."""
        return self._book.resting(ASK)


def _tape_of(stream: Records | Bytes | bytes | bytearray | memoryview) -> Bytes:
    """Return the content of a tape with these orders. MalformedMessage if they are neither orders nor a tape."""
    if isinstance(stream, bytes | bytearray | memoryview):
        return np.frombuffer(stream, np.uint8)
    if not isinstance(stream, np.ndarray):
        raise MalformedMessage(f"the stream is of the type {type(stream).__name__}; allowed are arrays and bytes")
    if stream.dtype not in (ORDER, np.uint8):
        raise MalformedMessage(f"the array's type is {stream.dtype}; orders have the type {ORDER}, tapes have uint8")
    return np.ascontiguousarray(stream).view(np.uint8)


def _by_kind(answers: Bytes) -> Answers:
    """Sort the engine's answers by kind."""
    starts = offsets_of(answers, ANSWER_SIZES)[:-1]

    def records(kind: type[Message]) -> Records:
        _, records_of_kind = records_of(kind, answers, starts)
        return records_of_kind

    return Answers(
        trades=records(Trade),
        confirmations=records(Confirmation),
        quotes=records(Quote),
        rejections=records(Rejection),
        cancelled=records(Cancelled),
        replaced=records(Replaced),
    )
