"""Completion time: receives answers, pairs each with its order by id, and counts it in log buckets.

There are three readings of the gateway's monotonic clock: when an order was due, when it was handed over (read just
before the send call that took it) and when it was answered (read after the receive call that delivered its first
answer). One reading, and one kernel call, serve a whole batch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import njit

from exchange import measurements, messages
from exchange.compiled import cached_kernel, field_reader
from exchange.measurements import BUCKETS, BUCKETS_PER_OCTAVE, CLOCKS, LogBuckets
from exchange.messages import ANSWER_TYPES, LAYOUTS, Confirmation, End, Hello, Rejection, Trade, read, sizes_by_code
from exchange.results import Stream
from transports.base import Link
from transports.frames import FrameBatch

Longs = npt.NDArray[np.int64]

_SIZE_OF_ANSWER = sizes_by_code(ANSWER_TYPES)
SHORTEST_ANSWER = int(_SIZE_OF_ANSWER[_SIZE_OF_ANSWER > 0].min())
_ANSWERS_AN_ORDER = np.zeros(256, np.bool_)
_ANSWERS_AN_ORDER[[LAYOUTS[kind].code for kind in (Trade, Confirmation, Rejection)]] = True
_order_id = field_reader("id", Trade, Confirmation, Rejection)
_HANDED_OVER, _DUE, _LAG = 0, 1, 2
_SUM, _MIN, _MAX = 0, 1, 2


@njit(inline="always")
def _is_answer_frame(buffer: npt.NDArray[np.uint8], at: int, end: int) -> bool:
    while at < end:
        size = _SIZE_OF_ANSWER[buffer[at]]
        if size == 0:
            return False
        at += size
    return at == end


@njit(inline="always")
def _count(value_ns: int, clock: int, counts: Longs, moments: Longs) -> None:
    bucket = int(math.log2(max(value_ns, 1)) * BUCKETS_PER_OCTAVE)
    counts[clock, min(bucket, BUCKETS - 1)] += 1
    moments[clock, _SUM] += value_ns
    moments[clock, _MIN] = min(moments[clock, _MIN], value_ns)
    moments[clock, _MAX] = max(moments[clock, _MAX], value_ns)


@njit(inline="always")
def _last_of_pack(order_id: int, packing: int, last_id: int) -> int:
    """The last order of this order's pack: the pack cannot go before that one is due."""
    last = order_id + (packing - order_id % packing) % packing
    return last_id if order_id <= last_id < last else last


@cached_kernel(measurements, messages)
def record_answers(
    buffer: npt.NDArray[np.uint8], offsets: Longs, first: int, count: int, handed: Longs, due: Longs, newest: int,
    now_ns: int, scheduled: bool, packing: int, interval: int,
    last_id: int, counts: Longs, moments: Longs, by_type: Longs, sampled: Longs,
) -> tuple[int, int, int]:  # fmt: skip
    """Record answer frames up to the first foreign one. Returns that frame, orders answered, and samples among them."""
    answered = samples = 0
    clocks = len(counts) // 2
    for frame in range(first, count):
        at, end = offsets[frame], offsets[frame + 1]
        if not _is_answer_frame(buffer, at, end) or at == end:
            return frame, answered, samples
        while at < end:
            kind = buffer[at]
            by_type[kind] += 1
            record, at = at, at + _SIZE_OF_ANSWER[kind]
            if not _ANSWERS_AN_ORDER[kind]:
                continue
            order_id = _order_id(buffer, record)
            if not 0 <= newest - order_id < len(handed):
                continue
            slot = order_id & (len(handed) - 1)
            if handed[slot] == 0:
                continue
            row = clocks if order_id == last_id else 0
            _count(now_ns - handed[slot], row + _HANDED_OVER, counts, moments)
            if scheduled:
                _count(now_ns - due[slot], row + _DUE, counts, moments)
                complete = slot if packing == 1 else _last_of_pack(order_id, packing, last_id) & (len(due) - 1)
                _count(max(handed[slot] - due[complete], 0), row + _LAG, counts, moments)
            answered += 1
            if order_id % interval == 0:
                sampled[samples] = order_id
                samples += 1
            handed[slot] = 0
    return count, answered, samples


class Completion:
    """Orders that wait for their first answer, and the buckets of those that have it."""

    def __init__(self, scheduled: bool, sampling_interval: int, capacity: int = 1 << 14, packing: int = 1) -> None:
        self._clocks = CLOCKS if scheduled else CLOCKS[:1]
        self._interval, self._packing = sampling_interval, packing
        self._scheduled = scheduled
        slots = 1 << (capacity - 1).bit_length()
        self._handed: Longs = np.zeros(slots, np.int64)  # by slot, which is an id's low bits
        self._due: Longs = np.zeros(slots, np.int64)  # by slot; untouched without a schedule
        self._counts: Longs = np.zeros((2 * len(CLOCKS), BUCKETS), np.int64)  # the lower half: the last order's
        self._moments: Longs = np.zeros((2 * len(CLOCKS), 3), np.int64)
        self._moments[:, _MIN] = 2**62
        self._sampled: Longs = np.zeros(1 << 16, np.int64)
        self.by_type: Longs = np.zeros(256, np.int64)
        self.newest = self.last_id = 0
        self.answered = 0

    def handed_over(self, count: int, now_ns: int, due: Longs | None = None) -> None:
        """Note that the next `count` orders went at `now_ns`, and when they were due where there is a schedule."""
        first = self.newest + 1
        self.newest += count
        slot = first & (len(self._handed) - 1)
        if count == 1 and not self._handed[slot]:  # the usual case when idle
            self._handed[slot] = now_ns
            if due is not None:
                self._due[slot] = due[0]
            return
        while count > len(self._handed) or any(part.any() for part in _slots(self._handed, first, count)):
            self._grow(first - 1)
        for part in _slots(self._handed, first, count):
            part[:] = now_ns
        if due is not None:
            upper, lower = _slots(self._due, first, count)
            upper[:], lower[:] = due[: len(upper)], due[len(upper) :]

    def _grow(self, newest: int) -> None:
        """Double the tables, which are full of unanswered orders; they hold orders up to `newest`."""
        size = len(self._handed)
        ids = np.arange(max(newest - size + 1, 0), newest + 1)
        self._handed, self._due = (_spread(table, ids) for table in (self._handed, self._due))

    def take(self, answers: FrameBatch, first: int, now_ns: int) -> tuple[int, Longs]:
        """Record answer frames from `first` on. Returns the first foreign frame, and ids of sampled orders answered."""
        if answers.used_bytes > len(self._sampled) * SHORTEST_ANSWER:
            self._sampled = np.zeros(answers.used_bytes // SHORTEST_ANSWER + 1, np.int64)
        frame, answered, samples = record_answers(
            answers.buffer, answers.offsets, first, answers.count, self._handed, self._due, self.newest,
            now_ns, self._scheduled, self._packing, self._interval,
            self.last_id, self._counts, self._moments, self.by_type, self._sampled,
        )  # fmt: skip
        self.answered += int(answered)
        return int(frame), self._sampled[: int(samples)]

    def close_second(self, last: bool = False) -> list[tuple[str, LogBuckets]]:
        """Times since the last call, by clock. The `last` order's are apart, since analysis leaves them out."""
        first_row = len(CLOCKS) if last else 0
        fresh = [(clock, self._take_out(first_row + row)) for row, clock in enumerate(self._clocks)]
        return [(clock, buckets) for clock, buckets in fresh if buckets.count]

    def _take_out(self, row: int) -> LogBuckets:
        sum_ns, min_ns, max_ns = (int(value) for value in self._moments[row])
        buckets = LogBuckets(self._counts[row].copy(), sum_ns, min_ns, max_ns)
        self._counts[row] = 0
        self._moments[row] = 0, 2**62, 0
        return buckets


def _slots(table: Longs, first: int, count: int) -> tuple[Longs, Longs]:
    """The slots of ids from `first` on, in two parts: up to the table's end, then from its start."""
    start = first & (len(table) - 1)
    wrapped = max(start + count - len(table), 0)
    return table[start : start + count - wrapped], table[:wrapped]


def _spread(table: Longs, ids: Longs) -> Longs:
    """A table of twice the size with the same values for these ids."""
    double = np.zeros(2 * len(table), np.int64)
    double[ids & (len(double) - 1)] = table[ids & (len(table) - 1)]
    return double


class Intake:
    """Takes what the link has. The engine's `hello` and `end` come once each; any other foreign frame is junk."""

    def __init__(self, link: Link, completion: Completion, stream: Stream) -> None:
        self._link, self._completion = link, completion
        self._batch = FrameBatch(1 << 14)
        self.stream = stream
        self.last_answer_ns = 0
        self.junk = 0
        self.hello: Hello | None = None
        self.end: End | None = None
        self.on_received: Callable[[int], None] = lambda now_ns: None
        self.on_sampled: Callable[[npt.NDArray[np.int64], int], None] = lambda order_ids, answered_ns: None

    def take(self) -> int:
        """Receive once. Returns how many frames came."""
        self._batch.clear()
        frames = self._link.receive(self._batch)
        if frames:
            now_ns = time.monotonic_ns()
            self.on_received(now_ns)
            self._read(now_ns)
        return frames

    def _read(self, now_ns: int) -> None:
        first, batch = 0, self._batch
        while first < batch.count:
            end, sampled = self._completion.take(batch, first, now_ns)
            if end > first:
                self.last_answer_ns = now_ns
                self.stream.update(batch.span(first, end))
            if len(sampled):
                self.on_sampled(sampled, now_ns)
            if end < batch.count:
                self._read_foreign(batch[end])
            first = end + 1

    def _read_foreign(self, frame: bytes) -> None:
        match read(frame):
            case End() as end if self.end is None:
                self.end = end
            case Hello() as hello if self.hello is None:
                self.hello = hello
            case _:
                self.junk += 1
