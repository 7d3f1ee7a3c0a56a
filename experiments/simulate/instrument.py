"""One instrument: its orders generated, matched and counted a block at a time, so memory is that of its book.

    SeededOrders ── block of orders ──▶ MatchingEngine ── block of answers ──▶ `take`
         └── checksum of orders              └── checksum of answers

The orders are those of `exchange tape --seed`, with the seed that the row tells; the checksums are `exchange match`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exchange.checksum import StreamChecksum
from exchange.messages import ASK, BID
from experiments.simulate.simulation import Simulation
from gateway.instruments import instrument_orders, instrument_seed
from gateway.seeded_orders import ORDER_BYTES, SeededOrders
from matching_engine.engine import MatchingEngine, Stop
from matching_engine.order_book import OrderBook
from matching_engine.resting import resting, volume_traded
from transports.frames import FrameBatch

BLOCK_ORDERS = 1 << 12
"""Orders and answers of a block stay in the processor's cache."""
BLOCK_ANSWERS = 4 * BLOCK_ORDERS

Bytes = npt.NDArray[np.uint8]
Take = Callable[[Bytes], object]


class Row(NamedTuple):
    """What became of an instrument: a row of instruments.parquet."""

    instrument: int
    seed: int
    orders: int
    trades: int
    confirmations: int
    quotes: int
    rejections: int
    volume_traded: int
    resting_asks: int
    resting_bids: int
    resting_ask_volume: int
    resting_bid_volume: int
    bid: int | None
    ask: int | None
    orders_xxh64: str
    answers_xxh64: str


class InstrumentBook(OrderBook):
    """Starts with room for a quarter of its orders: a small instrument is not slowed down by a large book's memory."""

    def __init__(self, orders: int, max_price: int, policy: str) -> None:
        self.first_capacity = min(max(orders // 4, 64), OrderBook.first_capacity)
        super().__init__(max_price, policy)


class InstrumentMatcher:
    """Matches one instrument after the other; its blocks' memory is used again."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._orders, self._answers = FrameBatch(BLOCK_ORDERS), FrameBatch(BLOCK_ANSWERS, 10 * BLOCK_ANSWERS)
        self._orders.offsets[:] = np.arange(BLOCK_ORDERS + 1) * ORDER_BYTES  # of every block, also of a shorter one

    def match(self, instrument: int, take: Take | None = None) -> Row:
        """All of its orders; `take` is given the answers' bytes, valid until it returns."""
        asked = self._simulation
        seed = instrument_seed(asked.seed, instrument)
        count = instrument_orders(asked.orders, asked.instruments, instrument)
        stream = SeededOrders(seed, asked.prices, asked.price_model == "normal")
        engine = MatchingEngine(InstrumentBook(count, asked.max_price, asked.policy))
        orders, answers = StreamChecksum(), StreamChecksum()
        for first in range(0, count, BLOCK_ORDERS):
            self._orders.count = min(BLOCK_ORDERS, count - first)
            stream.write(self._orders.buffer, first + 1, self._orders.count)
            orders.update(self._orders.span(0, self._orders.count))
            self._match_block(engine, answers, take)
        return _row(instrument, seed, engine, orders, answers)

    def _match_block(self, engine: MatchingEngine, checksum: StreamChecksum, take: Take | None) -> None:
        first, why = 0, Stop.ROOM
        while why is not Stop.DONE:
            self._answers.clear()
            first, why = engine.handle(self._orders, self._answers, first)
            span = self._answers.span(0, self._answers.count)
            checksum.update(span)
            if take:
                take(span)


def _row(instrument: int, seed: int, engine: MatchingEngine, orders: StreamChecksum, answers: StreamChecksum) -> Row:
    book, counts = engine.book, engine.counts
    asks, bids = resting(book, ASK), resting(book, BID)
    return Row(
        instrument=instrument, seed=seed,
        orders=counts.orders, trades=counts.trades, confirmations=counts.confirmations, quotes=counts.quotes,
        rejections=counts.rejections, volume_traded=volume_traded(book, ASK, asks),
        resting_asks=asks.orders, resting_bids=bids.orders,
        resting_ask_volume=asks.volume, resting_bid_volume=bids.volume,
        bid=book.best_bid or None, ask=book.best_ask if book.best_ask <= book.max_price else None,
        orders_xxh64=orders.hex, answers_xxh64=answers.hex,
    )  # fmt: skip
