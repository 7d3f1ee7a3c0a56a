"""A simulation's settings, and one instrument matched by them, a block at a time, so memory is that of its book.

    SeededOrders ── block of orders ──▶ MatchingEngine ── block of answers ──▶ `take`
         └── checksum of orders              └── checksum of answers

An instrument's orders are those of `exchange tape --seed`, with the seed in its row. The checksums are those of
`exchange match`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchange.allowed import BadSetting, whole
from exchange.messages import ASK, BID
from exchange.results import StreamChecksum
from exchange.settings import MAX_ORDERS, POLICIES
from exchange.workload import MAX_PRICE, USUAL_PRICES, check_prices, settled_prices
from gateway.seeded_orders import ORDER_BYTES, SeededOrders
from gateway.seeds import instrument_orders, instrument_seed
from matching_engine.engine import MatchingEngine, Stop
from matching_engine.order_book import OrderBook
from transports.frames import FrameBatch

MAX_INSTRUMENTS = 1_000_000
"""Every instrument's row comes back to the calling process."""
BLOCK_ORDERS = 1 << 12
"""A block's orders and answers fit into the processor's cache."""
BLOCK_ANSWERS = 4 * BLOCK_ORDERS

Bytes = npt.NDArray[np.uint8]
Take = Callable[[Bytes], object]
"""Receives the answers of a block as bytes, which are valid until it returns."""


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """All that the result depends on; simulation.json's `settings`."""

    instruments: int = 1_000
    orders: int = 100_000_000
    """All instruments together."""
    seed: int = 1
    prices: tuple[int, int] = USUAL_PRICES
    price_model: str = "uniform"
    max_price: int = 999
    policy: str = "price-time"

    def __post_init__(self) -> None:
        whole("instruments", self.instruments, 1, MAX_INSTRUMENTS)
        whole("orders", self.orders, self.instruments, self.instruments * MAX_ORDERS)
        whole("seed", self.seed, 0, 2**64 - 1)
        whole("max_price", self.max_price, 1, MAX_PRICE)
        check_prices(self.prices)
        object.__setattr__(self, "prices", settled_prices(self.prices, self.price_model, self.max_price))
        if self.policy not in POLICIES:
            raise BadSetting("policy", self.policy, " or ".join(POLICIES))

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "prices": list(self.prices)}


class Row(NamedTuple):
    """An instrument's result: a row of instruments.parquet."""

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
    """A book with room for a quarter of its orders at first, so that a small instrument needs little memory."""

    def __init__(self, orders: int, max_price: int, policy: str) -> None:
        self.first_capacity = min(max(orders // 4, 64), OrderBook.first_capacity)
        super().__init__(max_price, policy)


class InstrumentMatcher:
    """Matches one instrument after the other in the same two blocks of memory."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._orders, self._answers = FrameBatch(BLOCK_ORDERS), FrameBatch(BLOCK_ANSWERS, 10 * BLOCK_ANSWERS)
        self._orders.offsets[:] = np.arange(BLOCK_ORDERS + 1) * ORDER_BYTES

    def match(self, instrument: int, take: Take | None = None) -> Row:
        """Match all orders of an instrument; `take` receives the answers, block by block."""
        settings = self._simulation
        seed = instrument_seed(settings.seed, instrument)
        count = instrument_orders(settings.orders, settings.instruments, instrument)
        stream = SeededOrders(seed, settings.prices, settings.price_model)
        engine = MatchingEngine(InstrumentBook(count, settings.max_price, settings.policy))
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
    asks, bids = book.total_resting(ASK), book.total_resting(BID)
    return Row(
        instrument=instrument, seed=seed,
        orders=counts.orders, trades=counts.trades, confirmations=counts.confirmations, quotes=counts.quotes,
        rejections=counts.rejections, volume_traded=book.volume_traded(ASK, asks),
        resting_asks=asks.orders, resting_bids=bids.orders,
        resting_ask_volume=asks.volume, resting_bid_volume=bids.volume,
        bid=book.best_bid or None, ask=book.best_ask if book.best_ask <= book.max_price else None,
        orders_xxh64=orders.hex, answers_xxh64=answers.hex,
    )  # fmt: skip
