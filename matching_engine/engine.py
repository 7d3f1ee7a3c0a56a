"""The matching engine, bytes in and bytes out: it matches order frames and appends answer frames. No sockets."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from exchange.allowed import whole
from exchange.messages import ASK, LAYOUTS, Cancelled, Confirmation, Order, Quote, Rejection, encode
from matching_engine import arena as a
from matching_engine import encoding
from matching_engine import kernels as k
from matching_engine.order_book import IS_EXACT, OrderBook
from transports.frames import FrameBatch

Number = TypeVar("Number", np.uint8, np.int64)
CONFIRMATION_BYTES, QUOTE_BYTES, REJECTION_BYTES, CANCELLED_BYTES = (
    LAYOUTS[kind].size for kind in (Confirmation, Quote, Rejection, Cancelled)
)
HIGHEST_PACKING = 0xFFFF  # packing travels as u16


class HandleStop(Enum):
    """Reason for which `handle` returned."""

    DONE = k.DONE
    ROOM = k.ROOM  # the answers may lack room for the next frame's: send them, clear, go on at `next`
    FOREIGN = k.FOREIGN  # frame `next` is no order or cancel for this engine: look at it, go on at next + 1


_STOPS = {stop.value: stop for stop in HandleStop}  # a look-up costs less than HandleStop(value)


class Handled(NamedTuple):
    next: int
    stop: HandleStop


class EngineCounts(NamedTuple):
    """Messages since the book was opened; orders and cancels count also where they are rejected."""

    orders: int
    trades: int
    confirmations: int
    quotes: int
    rejections: int
    cancels: int
    cancelled: int

    @property
    def records(self) -> int:
        """Orders and cancels."""
        return self.orders + self.cancels

    @property
    def answers(self) -> int:
        return self.trades + self.confirmations + self.quotes + self.rejections + self.cancelled


def counts_in(counters: npt.NDArray[np.int64]) -> EngineCounts:
    """The counts of a book's state, shape (COUNTERS,)."""
    orders, answer_bytes, confirmations, quotes, rejections, cancels, cancelled = counters.tolist()
    others = CONFIRMATION_BYTES * confirmations + QUOTE_BYTES * quotes
    others += REJECTION_BYTES * rejections + CANCELLED_BYTES * cancelled
    trades = (answer_bytes - others) // encoding.TRADE_BYTES
    return EngineCounts(orders, trades, confirmations, quotes, rejections, cancels, cancelled)


class MatchingEngine:
    """Matches frames of up to `packing` records each; with packing, all answers to a frame make one frame."""

    def __init__(self, book: OrderBook, packing: int = 1) -> None:
        whole("packing", packing, 1, HIGHEST_PACKING)
        self.book = book
        self.packing = packing
        self.kernel = k.handler(exact=IS_EXACT[book.policy], keeps_ids=book.with_ids, packed=packing > 1)

    def renewed(self) -> MatchingEngine:
        """The same engine before its first order."""
        return MatchingEngine(self.book.renewed(), self.packing)

    def warm(self) -> None:
        """Compile this engine's kernels, or load them from disk, so that nothing compiles later. Changes no state."""
        book = OrderBook(1, self.book.policy, capacity=1, with_ids=self.book.with_ids)
        scratch = MatchingEngine(book, self.packing)
        scratch.handle(FrameBatch.of(encode(Order(1, ASK, 1, 1))), FrameBatch())

    def handle(self, orders: FrameBatch, answers: FrameBatch, first: int = 0, at: int = 0, byte: int = 0) -> Handled:
        """Match the order frames from `first` on and append their answers: all answers to a frame, or none.

        Returns early where `answers` may lack room for those to the next frame. If it lacks room though it is empty,
        its arrays are replaced by larger ones, so every call makes progress. IndexError where `first` is no frame.
        After a call of `kernel` that stopped within a frame, `at` and `byte` say where.
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
            if why == k.GROW:
                book.grow()
            elif why == k.ROOM and (at > orders.offsets[first] or answers.count == 0):
                _enlarge(answers, byte)
            else:
                return Handled(first, _STOPS[why])

    @property
    def counts(self) -> EngineCounts:
        return counts_in(self.book.state[a.ORDERS : a.ORDERS + a.COUNTERS])


def _enlarge(answers: FrameBatch, byte: int) -> None:
    """Double the room; behind `byte` there is then at least room for the answers to the largest order."""
    answers.buffer = _resized(answers.buffer, byte + encoding.MOST_BYTES)
    answers.offsets = _resized(answers.offsets, answers.count + encoding.MOST_FRAMES)


def _resized(array: npt.NDArray[Number], least: int) -> npt.NDArray[Number]:
    larger = np.zeros(max(2 * len(array), least), array.dtype)
    larger[: len(array)] = array
    return larger
