"""Bytes in, bytes out: order frames are matched, answer frames appended. No socket is known here."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from exchange.messages import ASK, Order, encode
from matching_engine import kernels as k
from matching_engine.order_book import OrderBook
from transports.frames import FrameBatch

Number = TypeVar("Number", np.uint8, np.int64)


class Stop(Enum):
    """Why `handle` came back."""

    DONE = k.DONE
    ROOM = k.ROOM  # the answers have no room left: send some, clear, go on at `next`
    FOREIGN = k.FOREIGN  # frame `next` is no order or cancel for this engine: decide, go on at next + 1


class Handled(NamedTuple):
    next: int
    stop: Stop


class Counts(NamedTuple):
    """Messages by kind since the book was opened; rejected orders count as orders, rejected cancels as cancels."""

    orders: int
    trades: int
    confirmations: int
    quotes: int
    rejections: int
    cancels: int
    cancelled: int


class MatchingEngine:
    def __init__(self, book: OrderBook, packing: int = 1) -> None:
        if not 1 <= packing <= 0xFFFF:
            raise ValueError(f"packing is {packing!r}: takes 1..65535 records a frame")
        self.book, self.packing = book, packing

    def warm(self) -> None:
        """Compile every kernel, or load it from disk, so that nothing compiles later. Changes no state."""
        scratch = MatchingEngine(OrderBook(max_price=1, capacity=1, with_ids=True))
        scratch.handle(FrameBatch.of(encode(Order(1, ASK, 1, 1))), FrameBatch())

    def handle(self, orders: FrameBatch, answers: FrameBatch, first: int = 0) -> Handled:
        """Match the order frames from `first` on and append their answers.

        All answers to a frame are appended or none. Stops early where `answers` may not hold those to the next
        frame; if it is empty even so, it grows instead, so that every call gets on.
        """
        if not 0 <= first <= orders.count:
            raise IndexError(f"first is {first}: the batch holds {orders.count} frames")
        byte, at = int(answers.offsets[answers.count]), 0
        while True:
            why, first, at, byte = self._run(orders, answers, first, at, byte)
            if why == k.GROW:
                self.book.grow()
            elif why == k.ROOM and (at > orders.offsets[first] or answers.count == 0):
                enlarge(answers, byte)
            else:
                return Handled(first, Stop(why))

    def _run(
        self, orders: FrameBatch, answers: FrameBatch, first: int, at: int, byte: int
    ) -> tuple[int, int, int, int]:
        book = self.book
        why, first, at, answers.count, byte = k.handle(
            orders.buffer, orders.offsets, first, orders.count, at,
            answers.buffer, answers.offsets, answers.count, byte,
            self.packing, answers.largest_frame, book.records, book.occupied, book.index, book.state,
        )  # fmt: skip
        return why, first, at, byte

    @property
    def counts(self) -> Counts:
        orders, trade_bytes, *others = self.book.state[k.ORDERS : k.ORDERS + 7].tolist()
        return Counts(orders, trade_bytes // k.TRADE_BYTES_EACH, *others)


def enlarge(answers: FrameBatch, byte: int) -> None:
    """Twice the room, and behind `byte` at least what the answers to the largest order there is may take."""
    room_bytes = max(2 * len(answers.buffer), byte + k.MOST_ANSWER_BYTES)
    room_frames = max(2 * len(answers.offsets), answers.count + k.MOST_ANSWERS)
    answers.buffer = resized(answers.buffer, room_bytes)
    answers.offsets = resized(answers.offsets, room_frames)


def resized(array: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    larger = np.zeros(size, array.dtype)
    larger[: len(array)] = array
    return larger
