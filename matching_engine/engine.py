"""The matching engine, bytes in and bytes out: it matches order frames and appends answer frames. No sockets."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from exchange.allowed import whole
from exchange.messages import ASK, LAYOUTS, Cancelled, Confirmation, Order, Quote, Rejection, Replaced, encode
from matching_engine import arena as layout
from matching_engine import encoding, kernels
from matching_engine.order_book import IS_EXACT, OrderBook
from transports.frames import FrameBatch

Number = TypeVar("Number", np.uint8, np.int64)
CONFIRMATION_BYTES = LAYOUTS[Confirmation].size
QUOTE_BYTES = LAYOUTS[Quote].size
REJECTION_BYTES = LAYOUTS[Rejection].size
CANCELLED_BYTES = LAYOUTS[Cancelled].size
REPLACED_BYTES = LAYOUTS[Replaced].size
HIGHEST_PACKING = 0xFFFF  # packing travels as u16


class HandleStop(Enum):
    """The reason for which `handle` returned."""

    DONE = kernels.DONE
    """Every frame was matched."""
    ROOM = kernels.ROOM
    """There may be no room for the answers to frame `next`: send the answers, clear them, go on at `next`."""
    FOREIGN = kernels.FOREIGN
    """Frame `next` is no order or cancel for this engine: read it otherwise, go on at `next` + 1."""


_STOPS = {stop.value: stop for stop in HandleStop}
"""A look-up in this dictionary costs less than HandleStop(value)."""


class Handled(NamedTuple):
    """Progress of `handle`."""

    next: int
    """The first frame that was not matched."""
    stop: HandleStop


class EngineCounts(NamedTuple):
    """Messages since the book was opened. Rejected orders and cancels count, too."""

    orders: int
    trades: int
    confirmations: int
    quotes: int
    rejections: int
    cancels: int
    """Requests to cancel."""
    cancelled: int
    """Answers that an order, or what was left of it, was cancelled."""
    replaces: int = 0
    """Requests to replace."""
    replaced: int = 0
    """Answers that an order was replaced."""

    @property
    def records(self) -> int:
        """Orders, cancels and replaces."""
        return self.orders + self.cancels + self.replaces

    @property
    def answers(self) -> int:
        """Answers of every kind."""
        return self.trades + self.confirmations + self.quotes + self.rejections + self.cancelled + self.replaced


def counts_in(counters: npt.NDArray[np.int64]) -> EngineCounts:
    """Return the counts in the counters of a book's state, shape (COUNTERS,).

    Kernels do not count trades: trades are the bytes of answers that no other kind of answer accounts for.
    """
    orders, answer_bytes, confirmations, quotes, rejections, cancels, cancelled, replaces, replaced = counters.tolist()
    other_bytes = (
        CONFIRMATION_BYTES * confirmations
        + QUOTE_BYTES * quotes
        + REJECTION_BYTES * rejections
        + CANCELLED_BYTES * cancelled
        + REPLACED_BYTES * replaced
    )
    trades = (answer_bytes - other_bytes) // encoding.TRADE_BYTES
    return EngineCounts(orders, trades, confirmations, quotes, rejections, cancels, cancelled, replaces, replaced)


class MatchingEngine:
    """Matches frames of up to `packing` records each; with packing, all answers to a frame make one frame."""

    def __init__(self, book: OrderBook, packing: int = 1, is_shared: bool = False) -> None:
        """`is_shared`: several gateways share the engine; ids are those of exchange/market_ids.py."""
        whole("packing", packing, 1, HIGHEST_PACKING)
        self.book = book
        self.packing = packing
        self.is_shared = is_shared
        self.kernel = kernels.handler(
            exact=IS_EXACT[book.policy],
            keeps_ids=book.with_ids,
            packed=packing > 1,
            shared=is_shared,
            several=book.several,
        )

    def renewed(self) -> MatchingEngine:
        """Return an engine with the same rules and an empty book."""
        return MatchingEngine(self.book.renewed(), self.packing, self.is_shared)

    def warm(self) -> None:
        """Compile this engine's kernels, or load them from disk, so that nothing compiles later. Changes no state."""
        book = self.book.tiny()
        scratch = MatchingEngine(book, self.packing, self.is_shared)
        order = Order(id=1, side=ASK, price=1, volume=1)
        scratch.handle(FrameBatch.of(encode(order)), FrameBatch())

    def handle(self, orders: FrameBatch, answers: FrameBatch, first: int = 0, at: int = 0, byte: int = 0) -> Handled:
        """Match the order frames from `first` on and append their answers: all answers to a frame, or none.

        Returns early if `answers` may lack room for the answers to the next frame. If `answers` is empty and still has
        too little room, its arrays are replaced by larger ones, so every call makes progress. After a call of `kernel`
        that stopped within a frame, `at` is the byte to go on at, and `byte` the end of its answers.

        IndexError if there is no frame `first`.
        """
        if not 0 <= first <= orders.count:
            raise IndexError(f"first is {first}: the batch holds {orders.count} frames")
        book = self.book
        while True:
            why, first, at, answers.count, byte = self.kernel(
                orders.buffer,
                orders.offsets,
                first,
                orders.count,
                at,
                self.packing,
                answers.buffer,
                answers.offsets,
                answers.count,
                byte,
                answers.largest_frame,
                book.arena,
                book.index,
            )
            if why == kernels.GROW:
                book.grow()
                continue
            lacks_room = why == kernels.ROOM
            is_within_frame = at > orders.offsets[first]
            if lacks_room and (is_within_frame or answers.count == 0):
                self.make_room(answers, byte)
                continue
            return Handled(first, _STOPS[why])

    def make_room(self, answers: FrameBatch, byte: int) -> None:
        """Double the memory, or more: the answers to the largest order then fit after `byte`."""
        answers.buffer = _resized(answers.buffer, byte + encoding.MOST_BYTES)
        answers.offsets = _resized(answers.offsets, answers.count + encoding.MOST_FRAMES)

    @property
    def counts(self) -> EngineCounts:
        """Messages so far."""
        return counts_in(self.book.state[layout.ORDERS : layout.ORDERS + layout.COUNTERS])


def _resized(array: npt.NDArray[Number], least: int) -> npt.NDArray[Number]:
    """Return a copy of the array of twice the length, and of length `least` at least."""
    larger = np.zeros(max(2 * len(array), least), array.dtype)
    larger[: len(array)] = array
    return larger
