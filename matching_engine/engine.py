"""Bytes in, bytes out: order frames are matched, answer frames appended. No socket is known here."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from exchange.messages import ASK, Order, encode
from matching_engine import arena as a
from matching_engine import encoding
from matching_engine import kernels as k
from matching_engine.order_book import OrderBook
from transports.frames import FrameBatch

Number = TypeVar("Number", np.uint8, np.int64)
HIGHEST_PACKING = 0xFFFF  # packing travels as u16


class Stop(Enum):
    """Why `handle` came back."""

    DONE = k.DONE
    ROOM = k.ROOM  # the answers may not have room for the next: send them, clear, go on at `next`
    FOREIGN = k.FOREIGN  # frame `next` is no order or cancel for this engine: decide, go on at next + 1


_STOPS = {stop.value: stop for stop in Stop}  # a call costs no more than it must


class Handled(NamedTuple):
    next: int
    stop: Stop


class Counts(NamedTuple):
    """Messages since the book was opened; orders and cancels count where they are rejected, too."""

    orders: int
    trades: int
    confirmations: int
    quotes: int
    rejections: int
    cancels: int
    cancelled: int


class MatchingEngine:
    """Matches what comes in frames of up to `packing` records; all answers to a frame of several make one frame."""

    def __init__(self, book: OrderBook, packing: int = 1) -> None:
        if not 1 <= packing <= HIGHEST_PACKING:
            raise ValueError(f"packing is {packing!r}: takes 1..{HIGHEST_PACKING} records a frame")
        self.book, self.packing = book, packing
        exact = book.policy == "exact-price"
        self._handle = k.handler(exact=exact, keeps_ids=book.with_ids, packed=packing > 1)

    def warm(self) -> None:
        """Compile this engine's kernels, or load them from disk, so that nothing compiles later. Changes no state."""
        book = OrderBook(1, self.book.policy, capacity=1, with_ids=self.book.with_ids)
        scratch = MatchingEngine(book, self.packing)
        scratch.handle(FrameBatch.of(encode(Order(1, ASK, 1, 1))), FrameBatch())

    def handle(self, orders: FrameBatch, answers: FrameBatch, first: int = 0) -> Handled:
        """Match the order frames from `first` on and append their answers, all of a frame's or none.

        Comes back early where `answers` may not hold those to the next frame; if it is empty even so, its arrays
        are replaced by larger ones, so that every call gets on.
        """
        if not 0 <= first <= orders.count:
            raise IndexError(f"first is {first}: the batch holds {orders.count} frames")
        book, at, byte = self.book, 0, 0
        while True:
            why, first, at, answers.count, byte = self._handle(
                orders.buffer, orders.offsets, first, orders.count, at, self.packing,
                answers.buffer, answers.offsets, answers.count, byte, answers.largest_frame,
                book.arena, book.index,
            )  # fmt: skip
            if why == k.GROW:
                book.grow()
            elif why == k.ROOM and (at > orders.offsets[first] or answers.count == 0):
                _enlarge(answers, byte)
            else:
                return Handled(first, _STOPS[why])

    @property
    def counts(self) -> Counts:
        orders, answer_bytes, confirmations, quotes, rejections, cancels, cancelled = self.book.state[
            a.ORDERS : a.CANCELLED + 1
        ].tolist()
        others = encoding.CONFIRMATION_BYTES * confirmations + encoding.QUOTE_BYTES * quotes
        others += encoding.REJECTION_BYTES * rejections + encoding.CANCELLATION_BYTES * cancelled
        trades = (answer_bytes - others) // encoding.TRADE_BYTES
        return Counts(orders, trades, confirmations, quotes, rejections, cancels, cancelled)


def _enlarge(answers: FrameBatch, byte: int) -> None:
    """Twice the room, and behind `byte` at least what the answers to the largest order there is may take."""
    answers.buffer = _resized(answers.buffer, byte + encoding.MOST_BYTES)
    answers.offsets = _resized(answers.offsets, answers.count + encoding.MOST_FRAMES)


def _resized(array: npt.NDArray[Number], least: int) -> npt.NDArray[Number]:
    larger = np.zeros(max(2 * len(array), least), array.dtype)
    larger[: len(array)] = array
    return larger
