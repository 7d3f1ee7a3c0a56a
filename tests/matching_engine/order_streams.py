"""Helpers for the engine's tests: two books with the same methods, frames, and streams of orders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from hypothesis import strategies as st

from benchmarks.reference_book import ReferenceBook
from exchange.messages import (
    ASK,
    BID,
    LAYOUTS,
    LIMIT,
    MARKET,
    POST_ONLY,
    Cancel,
    CancelRequest,
    InstrumentOrder,
    Message,
    Order,
    ReplaceRequest,
    TypedOrder,
    decode,
    encode,
)
from matching_engine.engine import HandleStop, MatchingEngine
from matching_engine.order_book import OrderBook
from tests.matching_engine.invariants import check
from transports.frames import FrameBatch


class TinyBook(OrderBook):
    """A book of two orders at first, so that it grows early and often."""

    first_capacity = 2


class Compiled:
    """The compiled book. It takes one message at a time, and its invariants are checked after each."""

    def __init__(self, **settings) -> None:
        self.book = TinyBook(**settings)
        self.engine = MatchingEngine(self.book)

    def handle(self, message: Message) -> list[Message]:
        answers = FrameBatch()
        next_frame, stop = self.engine.handle(FrameBatch.of(encode(message)), answers)
        assert next_frame == 1
        assert stop is HandleStop.DONE
        check(self.book)
        return [decode(frame) for frame in answers]

    def resting(self, side: int) -> list[tuple[int, int, int]]:
        return [tuple(order) for order in self.book.resting(side)]


class Reference(ReferenceBook):
    """The reference book, with its resting orders as tuples."""

    def resting(self, side: int) -> list[tuple[int, int, int]]:
        return [(order.id, order.price, order.volume) for order in super().resting(side)]


def all_answers(book: Compiled | Reference, messages: Iterable[Message]) -> list[Message]:
    """Return the answers to all messages."""
    return list(chain.from_iterable(book.handle(message) for message in messages))


def last_answers(book: Compiled | Reference, messages: Iterable[Message]) -> list[Message]:
    """Return the answers to the last of the messages."""
    answers: list[Message] = []
    for message in messages:
        answers = book.handle(message)
    return answers


def handled(engine: MatchingEngine, frames: list[bytes], batches: Iterable[int] | None = None, **room) -> list[bytes]:
    """Return the answer frames to these frames.

    The frames are handled in batches of these sizes. Answers are taken away whenever their room runs out.
    """
    sent: list[bytes] = []
    answers = FrameBatch(**room)
    for batch in _batches(frames, batches):
        first = 0
        stop = HandleStop.ROOM
        while stop is not HandleStop.DONE:
            first, stop = engine.handle(batch, answers, first)
            assert stop is not HandleStop.FOREIGN
            sent += answers
            answers.clear()
    return sent


def _batches(frames: list[bytes], sizes: Iterable[int] | None) -> Iterable[FrameBatch]:
    """Yield the frames in batches of these sizes, and the rest in a last batch."""
    first = 0
    for size in sizes or ():
        yield FrameBatch.of(*frames[first : first + size])
        first += size
    yield FrameBatch.of(*frames[first:])


def packs(messages: list[Message], sizes: Iterable[int]) -> list[bytes]:
    """Return the messages as frames of these numbers of records. Each message left over has a frame of its own."""
    records = [encode(message) for message in messages]
    frames: list[bytes] = []
    first = 0
    for size in sizes:
        frames.append(b"".join(records[first : first + size]))
        first += size
    not_empty = [frame for frame in frames if frame]
    return not_empty + records[first:]


def uniform_orders(count: int, lowest: int = 450, highest: int = 549, most_lots: int = 100) -> np.ndarray:
    """Return order records whose sides, prices and volumes are uniform, as in the default workload."""
    random = np.random.default_rng(2010)
    orders = np.zeros(count, LAYOUTS[Order].dtype)
    orders["type"] = LAYOUTS[Order].code
    orders["id"] = np.arange(1, count + 1)
    orders["side"] = random.integers(ASK, BID, count, endpoint=True)
    orders["price"] = random.integers(lowest, highest, count, endpoint=True)
    orders["volume"] = random.integers(1, most_lots, count, endpoint=True)
    return orders


def batch_of(orders: np.ndarray) -> FrameBatch:
    """Return a batch with a frame for each order."""
    batch = FrameBatch(len(orders), max(orders.nbytes, 1 << 17))
    batch.buffer[: orders.nbytes] = orders.view(np.uint8)
    batch.offsets[:] = orders.itemsize * np.arange(len(orders) + 1)
    batch.count = len(orders)
    return batch


@st.composite
def settings_of_books(draw) -> dict[str, object]:
    return {
        "max_price": draw(st.sampled_from([1, 3, 64, 127, 999, 4095, 4096, 65534])),
        "policy": draw(st.sampled_from(["price-time", "exact-price"])),
        "capacity": draw(st.sampled_from([None, None, 1, 2, 5])),
        "with_ids": draw(st.booleans()),
    }


INSTRUMENTS = 3
"""Books of a stream with instruments, unless a test wants another number."""


@dataclass(frozen=True)
class Drawn:
    """The values that hypothesis drew for a message.

    A cancel or replace names the order that came `earlier` messages before it; a replace may keep that order's price.
    """

    kind: type[Message]
    has_new_id: bool
    earlier: int
    side: int
    price: int
    volume: int
    order_type: int
    keeps_price: bool
    instrument: int = 0

    def message(self, number: int, prices: Sequence[int]) -> Message:
        """Return the message of this number in its stream. `prices`: of the messages up to this one, at least."""
        named_id = max(0, number - self.earlier)
        order_id = number if self.has_new_id else number // 2
        if self.kind is Cancel:
            return Cancel(named_id)
        if self.kind is CancelRequest:
            return CancelRequest(number, named_id)
        if self.kind is ReplaceRequest:
            price = prices[named_id - 1] if self.keeps_price and named_id else self.price
            return ReplaceRequest(number, named_id, price, self.volume)
        if self.kind is TypedOrder:
            price = 0 if self.order_type == MARKET and self.has_new_id else self.price
            return TypedOrder(order_id, self.side, price, self.volume, self.order_type)
        if self.kind is InstrumentOrder:
            price = 0 if self.order_type == MARKET and self.has_new_id else self.price
            return InstrumentOrder(order_id, self.instrument, self.side, price, self.volume, self.order_type)
        return Order(order_id, self.side, self.price, self.volume)


KINDS = [Order, Order, Order, TypedOrder, TypedOrder, ReplaceRequest, ReplaceRequest, CancelRequest, Cancel]
KINDS_WITH_INSTRUMENTS = [*KINDS, *[InstrumentOrder] * 9]


@st.composite
def streams(draw, max_price: int, most: int = 60, instruments: int = 0, least: int = 0) -> list[Message]:
    """Draw orders of all types at a few neighbouring prices, so that they trade, with cancels and replaces.

    `instruments`: if there are any, half of the records are orders of one of them, often of the first, the last or the
    middle one, and sometimes of the next number, which nobody serves. About every third record has a wrong field, a
    repeated id, or names an order that is not there; if most had, hardly an order would trade or be cancelled.
    """
    busy_instruments = [0, instruments // 2, max(instruments - 1, 0)]
    centre = draw(st.integers(1, max_price))
    near = st.integers(max(1, centre - 3), min(max_price, centre + 3))
    any_price = st.integers(0, 0xFFFF)
    order_types = [*range(LIMIT, POST_ONLY + 1)]
    message = st.builds(
        Drawn,
        kind=st.sampled_from(KINDS_WITH_INSTRUMENTS if instruments else KINDS),
        has_new_id=st.sampled_from([*[True] * 9, False]),
        earlier=st.one_of(st.integers(1, 4), st.integers(0, most)),
        side=st.sampled_from([*[ASK, BID] * 15, 0, 3, 255]),
        price=st.one_of(*[near] * 9, any_price),
        volume=st.one_of(st.integers(1, 4), st.integers(1, 100), st.integers(0, 0xFFFF), st.just(0xFFFF)),
        instrument=st.one_of(st.sampled_from(busy_instruments), st.integers(0, instruments)),
        order_type=st.sampled_from([*order_types * 6, 0, 6, 255]),
        keeps_price=st.booleans(),
    )
    drawn = draw(st.lists(message, min_size=least, max_size=most))
    prices = [entry.price for entry in drawn]
    return [entry.message(number, prices) for number, entry in enumerate(drawn, 1)]
