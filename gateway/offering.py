"""Offers orders: fills batches with records, and hands over what is due while the window and the link allow it."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from exchange.results import HashedStream
from exchange.settings import RunSettings
from gateway.completion import Completion
from gateway.due_times import NEVER_NS, NO_DUE_TIMES
from gateway.mixed_orders import LARGEST_RECORD, MixedOrders
from gateway.pacer import LOOK_AHEAD, Pacer
from gateway.seeded_orders import ORDER_BYTES, SeededOrders
from transports.base import Link
from transports.frames import Bytes, FrameBatch, Longs

BATCH_ORDERS = LOOK_AHEAD
AHEAD_ORDERS = 8 * BATCH_ORDERS
"""The most orders that are prepared for compiled turns. New ones are prepared once fewer than half are left."""


class OrdersAhead(NamedTuple):
    """Prepared orders that go next, in frames of `packing` orders; the last frame may be shorter."""

    buffer: Bytes
    offsets: Longs
    frames: int
    due: Longs
    """Due time of each order."""
    first_id: int
    packing: int
    window: int
    """The most orders that may be unanswered."""


class Offering:
    """Hands over `limit` orders in all, of which `sent` have gone. A window bounds the number of unanswered orders."""

    def __init__(
        self, settings: RunSettings, link: Link, completion: Completion, pacer: Pacer, stream: HashedStream
    ) -> None:
        self._link = link
        self._completion = completion
        self._pacer = pacer
        self._flow = OrderFlow.of(settings)
        self._packing = settings.packing
        self._window = settings.window
        self._batch_orders = BATCH_ORDERS - BATCH_ORDERS % self._packing
        self._ahead_orders = AHEAD_ORDERS - AHEAD_ORDERS % self._packing
        self._batch = FrameBatch(BATCH_ORDERS)
        """Orders on their way to the link."""
        self._orders_in_batch = 0
        self._first_unsent = 0
        """The first frame of `_batch` that the link has not taken."""
        self._prepared = 0
        """Orders that were put into `_batch` so far, or were sent ahead."""
        self._ahead = FrameBatch(AHEAD_ORDERS, AHEAD_ORDERS * LARGEST_RECORD)
        """Orders that are prepared for compiled turns."""
        self._ahead_after = 0
        """The id of the order before the first one in `_ahead`."""
        self._ahead_until = 0
        """The id of the last order in `_ahead`."""
        self._is_stopped = False
        self.sent = 0
        """Orders that the link has taken."""
        self.first_handed_ns = 0
        """When the first order was handed over."""
        self.last_handed_ns = 0
        """When the latest order was handed over."""
        self.limit = settings.order_limit
        """Orders in all."""
        completion.last_id = self.limit
        self.stream = stream

    @property
    def pending(self) -> bool:
        """Whether prepared orders wait for room on the link."""
        return self._first_unsent < self._batch.count

    @property
    def done(self) -> bool:
        """Whether every order was sent."""
        return self.sent >= self.limit

    def stop(self) -> None:
        """Offer no orders beyond those that are prepared."""
        self._is_stopped = True
        self._limit_to_prepared()

    def _limit_to_prepared(self) -> None:
        self.limit = self._prepared
        self._completion.last_id = self._prepared

    def next_due_ns(self) -> int:
        """Return the time to offer again. Offer earlier if an answer opens the window, or the link has room again."""
        if self.done or self.pending or self._allowed() <= 0:
            return NEVER_NS
        return self._pacer.next_due_ns(self._prepared)

    def offer(self, now_ns: int) -> int:
        """Hand over the orders that are due and allowed. Returns how many orders the link took."""
        if not self.pending and not self._prepare(now_ns):
            return 0
        handed_ns = time.monotonic_ns()
        first = self._first_unsent
        self._first_unsent = self._send(first)
        if self._first_unsent == first:
            return 0
        return self._note_handed_over(first, handed_ns)

    def _send(self, first: int) -> int:
        """Send the batch's frames from `first` on. Returns the first frame that was not taken."""
        return self._link.send(self._batch, first)

    def _allowed(self) -> int:
        """Return how many more orders may be prepared: whole packs within the window, up to the limit."""
        left = self.limit - self._prepared
        if self._window is None:
            return left
        unanswered = self._prepared - self._completion.answered
        in_window = self._window - unanswered
        if left <= in_window:
            return left
        return in_window - in_window % self._packing

    def _prepare(self, now_ns: int) -> int:
        """Fill the batch with orders that are due and allowed. Returns how many orders these are."""
        due = self._pacer.due_by(now_ns, self._prepared) - self._prepared
        count = min(due, self._allowed(), self._batch_orders)
        if count <= 0:
            return 0
        self._fill_batch(self._prepared + 1, count)
        self._prepared += count
        return count

    def _fill_batch(self, first_id: int, count: int) -> None:
        """Put these orders into the batch, none of them sent."""
        self._flow.fill(self._batch, first_id, count)
        self._orders_in_batch = count
        self._first_unsent = 0

    def _orders_in_frames(self, first: int, end: int) -> int:
        """Return the number of orders in the batch's frames from `first` to `end` - 1."""
        orders_before_end = min(end * self._packing, self._orders_in_batch)
        return orders_before_end - first * self._packing

    def _note_handed_over(self, first: int, handed_ns: int) -> int:
        """Note that the link took the frames from `first` on: their orders now wait for answers. Returns how many."""
        span = self._batch.span(first, self._first_unsent)
        count = self._orders_in_frames(first, self._first_unsent)
        due_times = self._pacer.due_times(self.sent + 1, count)
        self._completion.handed_over(count, handed_ns, due_times)
        self._note_sent(span, count, handed_ns, handed_ns)
        return count

    def _note_sent(
        self, span: Bytes, count: int, first_handed_ns: int, last_handed_ns: int, is_hashed: bool = False
    ) -> None:
        """Count `count` sent orders, whose records are in `span`, and hash them unless they are hashed already."""
        if not is_hashed:
            self.stream.update(span)
        self.first_handed_ns = self.first_handed_ns or first_handed_ns
        self.last_handed_ns = last_handed_ns
        self.sent += count

    def look_ahead(self) -> OrdersAhead | None:
        """Return the orders that go next in compiled turns; None if orders wait for the link, or without a schedule.

        They end where Python has something to do: at three quarters of the run, at its end, or at the last order that
        is prepared.
        """
        if self.pending or not self._pacer.scheduled:
            return None
        three_quarters = math.ceil(3 * self.limit / 4)
        stop = three_quarters if three_quarters > self.sent else self.limit
        packs = math.ceil((stop - self.sent) / self._packing)
        wanted = min(packs * self._packing, self.limit - self.sent)
        prepared = self._refill_ahead(wanted)
        return self.orders_ahead(min(wanted, prepared))

    def _refill_ahead(self, wanted: int) -> int:
        """Prepare orders anew once fewer than half of them are left. Returns how many are prepared now."""
        if wanted == 0:
            return 0
        sent_from_ahead = self.sent - self._ahead_after
        left = self._ahead_until - self.sent
        is_within_frame = sent_from_ahead % self._packing > 0
        has_too_few = left < min(wanted, self._ahead_orders // 2)
        if has_too_few or is_within_frame:
            left = min(self.limit - self.sent, self._ahead_orders)
            self._flow.fill(self._ahead, self.sent + 1, left)
            self._ahead_after = self.sent
            self._ahead_until = self.sent + left
        return left

    def orders_ahead(self, count: int) -> OrdersAhead:
        """Return the next `count` of the prepared orders."""
        return OrdersAhead(
            buffer=self._ahead.buffer,
            offsets=self._ahead.offsets[self._frames_sent_ahead :],
            frames=math.ceil(count / self._packing),
            due=self._pacer.due_times(self.sent + 1, count) if count else NO_DUE_TIMES,
            first_id=self.sent + 1,
            packing=self._packing,
            window=self.limit if self._window is None else self._window,
        )

    @property
    def _frames_sent_ahead(self) -> int:
        """Frames of `_ahead` that were sent."""
        return (self.sent - self._ahead_after) // self._packing

    def note_sent_ahead(self, frames: int, first_handed_ns: int, last_handed_ns: int) -> None:
        """Note that `frames` of `look_ahead` were sent. If the stream keeps no bytes, they are hashed already."""
        if frames:
            first = self._frames_sent_ahead
            span = self._ahead.span(first, first + frames)
            orders_ahead = self._ahead_until - self._ahead_after
            orders_before_end = min((first + frames) * self._packing, orders_ahead)
            count = orders_before_end - first * self._packing
            self._completion.newest += count
            self._note_sent(span, count, first_handed_ns, last_handed_ns, is_hashed=not self.stream.keeps_bytes)
        self._prepared = self.sent
        if self._is_stopped:  # during the turns: the limit follows what they sent
            self._limit_to_prepared()


LONGEST_BATCH = 1 << 16
"""The most frames of a batch."""


class Orders(Protocol):
    """A source of orders."""

    def write(self, buffer: Bytes, first_id: int, count: int) -> None:
        """Write the records of `count` orders from `first_id` on, from the buffer's start on."""


class MixedMessages(Protocol):
    """A source of messages whose records have several sizes."""

    def write(self, buffer: Bytes, ends: Longs, first_id: int, count: int) -> None:
        """Write `count` messages from `first_id` on, from the buffer's start on; `ends` gets where each ends."""


class OrderFlow:
    """Fills batches with orders. The orders are the same bytes, however they are divided into batches."""

    def __init__(self, orders: Orders, packing: int = 1) -> None:
        self._orders = orders
        self._packing = packing
        self._ends = np.arange(1, LONGEST_BATCH + 1) * (packing * ORDER_BYTES)

    @classmethod
    def of(cls, settings: RunSettings) -> OrderFlow | MixedOrderFlow:
        """Return the flow of a run's orders: those of its tape, of its mix, or else of its seed."""
        if settings.tape is not None:
            return cls._of_tape(Path(settings.tape), settings)
        if MixedOrders.are_needed_for(settings):
            return MixedOrderFlow(MixedOrders.of(settings), settings.packing)
        return cls(SeededOrders.of(settings), settings.packing)

    @classmethod
    def _of_tape(cls, tape: Path, settings: RunSettings) -> OrderFlow | MixedOrderFlow:
        """Return the flow of a tape's messages. The settings have a mix if these are not only plain orders."""
        from gateway.tape import TapedMessages, TapedOrders

        if settings.mix is None:
            return cls(TapedOrders(tape), settings.packing)
        return MixedOrderFlow(TapedMessages(tape), settings.packing)

    def fill(self, batch: FrameBatch, first_id: int, count: int) -> None:
        """Fill the batch with orders first_id .. first_id + count - 1. The last frame may be shorter."""
        self._orders.write(batch.buffer, first_id, count)
        frames = math.ceil(count / self._packing)
        batch.offsets[1 : frames + 1] = self._ends[:frames]
        batch.offsets[frames] = count * ORDER_BYTES
        batch.count = frames


class MixedOrderFlow:
    """Fills batches with the messages of a mix, whose records have several sizes."""

    def __init__(self, orders: MixedMessages, packing: int = 1) -> None:
        self._orders = orders
        self._packing = packing
        self._ends = np.zeros(LONGEST_BATCH, np.int64)
        """Where the record of each message ends, in the batch that was filled last."""

    def fill(self, batch: FrameBatch, first_id: int, count: int) -> None:
        """Fill the batch with messages first_id .. first_id + count - 1. The last frame may be shorter."""
        self._orders.write(batch.buffer, self._ends, first_id, count)
        frames = math.ceil(count / self._packing)
        whole_frames = count // self._packing
        batch.offsets[1 : whole_frames + 1] = self._ends[self._packing - 1 : count : self._packing]
        batch.offsets[frames] = self._ends[count - 1]
        batch.count = frames
