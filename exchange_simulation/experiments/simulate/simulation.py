"""A simulation's settings, and the matching of one instrument, block by block, so that memory holds only its book.

    SeededOrders ── block of orders ──▶ MatchingEngine ── block of answers ──▶ events, if wanted
         └── checksum of orders              └── checksum of answers

`exchange tape --seed` makes the same orders from the seed in an instrument's row, and `exchange match` the same
checksums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchange.allowed import one_of, whole
from exchange.checksum import StreamChecksum
from exchange.messages import ASK, BID
from exchange.scheduled_load import MAX_ORDERS
from exchange.settings import POLICIES
from exchange.workload import MAX_PRICE, USUAL_PRICES, check_prices, settled_prices
from gateway.seeded_orders import ORDER_BYTES, SeededOrders
from gateway.seeds import instrument_orders, instrument_seed
from matching_engine.engine import HandleStop, MatchingEngine
from matching_engine.order_book import OrderBook
from transports.frames import LARGEST_FRAME, FrameBatch

MAX_INSTRUMENTS = 1_000_000
"""The most instruments. The calling process holds a row for each of them in memory."""
BLOCK_ORDERS = 1 << 12
"""Orders of a block. They and their answers fit into the processor's cache."""

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """The settings that determine the result; `settings` in simulation.json."""

    instruments: int = 1_000
    orders: int = 100_000_000
    """The orders of all instruments together."""
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
        one_of("policy", self.policy, POLICIES)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "prices": list(self.prices)}


class InstrumentRow(NamedTuple):
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
    """A book that first has room for a quarter of its orders, so that a small instrument needs little memory."""

    def __init__(self, orders: int, max_price: int, policy: str) -> None:
        self.first_capacity = min(max(orders // 4, 64), OrderBook.first_capacity)
        super().__init__(max_price, policy)


@dataclass(frozen=True)
class Block:
    """Orders of an instrument and their answers. The next block overwrites both."""

    instrument: int
    first: int
    """The index of the block's first order among the instrument's orders."""
    orders: Bytes
    answers: FrameBatch
    """With `by_order`, a frame holds all answers to one order."""


class InstrumentMatcher:
    """Matches one instrument after the other in the same two blocks of memory."""

    def __init__(self, simulation: Simulation, *, by_order: bool = False, block: int = BLOCK_ORDERS) -> None:
        """With `by_order`, a frame holds all answers to one order. `block` is the number of orders in a block."""
        self._simulation = simulation
        self._block = block
        self._packing = 2 if by_order else 1
        self._orders = FrameBatch(block, max(block * ORDER_BYTES, LARGEST_FRAME))
        self._answers = FrameBatch(4 * block, max(40 * block, LARGEST_FRAME))
        self._orders.offsets[:] = np.arange(block + 1) * ORDER_BYTES

    def match(self, instrument: int) -> Iterator[Block | InstrumentRow]:
        """Match all orders of an instrument; yield each block, and the instrument's row last."""
        settings = self._simulation
        seed = instrument_seed(settings.seed, instrument)
        count = instrument_orders(settings.orders, settings.instruments, instrument)
        stream = SeededOrders(seed, settings.prices, settings.price_model)
        engine = MatchingEngine(InstrumentBook(count, settings.max_price, settings.policy), self._packing)
        orders_checksum = StreamChecksum()
        answers_checksum = StreamChecksum()
        for first in range(0, count, self._block):
            self._orders.count = min(self._block, count - first)
            stream.write(self._orders.buffer, first + 1, self._orders.count)
            orders_checksum.update(self._orders.span(0, self._orders.count))
            for block in self._match_block(engine, instrument, first):
                answers_checksum.update(block.answers.span(0, block.answers.count))
                yield block
        yield _row(instrument, seed, engine, orders_checksum, answers_checksum)

    def _match_block(self, engine: MatchingEngine, instrument: int, orders_before: int) -> Iterator[Block]:
        """Match the orders in memory; yield a block whenever the memory for answers is full, and at the end."""
        first = 0
        stop = HandleStop.ROOM
        while stop is not HandleStop.DONE:
            self._answers.clear()
            end, stop = engine.handle(self._orders, self._answers, first)
            yield Block(
                instrument=instrument,
                first=orders_before + first,
                orders=self._orders.span(first, end),
                answers=self._answers,
            )
            first = end


def _row(
    instrument: int,
    seed: int,
    engine: MatchingEngine,
    orders_checksum: StreamChecksum,
    answers_checksum: StreamChecksum,
) -> InstrumentRow:
    """Return the result of an instrument whose orders were all matched."""
    book = engine.book
    counts = engine.counts
    asks = book.total_resting(ASK)
    bids = book.total_resting(BID)
    return InstrumentRow(
        instrument=instrument,
        seed=seed,
        orders=counts.orders,
        trades=counts.trades,
        confirmations=counts.confirmations,
        quotes=counts.quotes,
        rejections=counts.rejections,
        volume_traded=book.volume_traded(ASK, asks),
        resting_asks=asks.orders,
        resting_bids=bids.orders,
        resting_ask_volume=asks.volume,
        resting_bid_volume=bids.volume,
        bid=book.best_bid or None,
        ask=book.best_ask if book.best_ask <= book.max_price else None,
        orders_xxh64=orders_checksum.hex,
        answers_xxh64=answers_checksum.hex,
    )
