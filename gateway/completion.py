"""Completion time: pairs each answer with its order by id, and counts it into log buckets, in one kernel a batch.

Three readings of the gateway's monotonic clock matter: when an order was due, when it was handed over (read
just before the send call that took it) and when it was answered (read after the receive call that delivered
its first answer). One reading serves a whole batch.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import int64, njit

from exchange import measurements, messages
from exchange.compiled import cached_kernel
from exchange.measurements import BUCKETS, BUCKETS_PER_OCTAVE, CLOCKS, LogBuckets
from exchange.messages import LAYOUTS, Cancelled, Confirmation, Quote, Rejection, Trade
from transports.frames import FrameBatch

Longs = npt.NDArray[np.int64]

_SIZE_OF_ANSWER = np.zeros(256, np.int64)
for _answer in (Trade, Confirmation, Quote, Rejection, Cancelled):
    _SIZE_OF_ANSWER[LAYOUTS[_answer].code] = LAYOUTS[_answer].size
SHORTEST_ANSWER = LAYOUTS[Confirmation].size
_QUOTE, _CANCELLED = LAYOUTS[Quote].code, LAYOUTS[Cancelled].code
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
    """The order that completes the pack: before it is due the pack cannot go."""
    last = order_id + (packing - order_id % packing) % packing
    return last_id if order_id <= last_id < last else last


@njit(inline="always")
def _id_at(buffer: npt.NDArray[np.uint8], at: int) -> int:
    return int64(buffer[at]) | buffer[at + 1] << 8 | buffer[at + 2] << 16 | int64(buffer[at + 3]) << 24


@cached_kernel(measurements, messages)
def record_answers(
    buffer: npt.NDArray[np.uint8], offsets: Longs, first: int, count: int, handed: Longs, due: Longs, newest: int,
    now_ns: int, scheduled: bool, packing: int, interval: int,
    last_id: int, counts: Longs, moments: Longs, by_type: Longs, sampled: Longs,
) -> tuple[int, int, int]:  # fmt: skip
    """Take answer frames until one is none: (that frame, orders answered, how many of them are sampled)."""
    answered = samples = 0
    clocks = len(counts) // 2
    for frame in range(first, count):
        at, end = offsets[frame], offsets[frame + 1]
        if not _is_answer_frame(buffer, at, end) or at == end:
            return frame, answered, samples
        while at < end:
            kind = buffer[at]
            by_type[kind] += 1
            order_id = _id_at(buffer, at + 1)
            at += _SIZE_OF_ANSWER[kind]
            if kind in (_QUOTE, _CANCELLED) or not 0 <= newest - order_id < len(handed):
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
        self._handed: Longs = np.zeros(slots, np.int64)  # an id's low bits are its slot
        self._due: Longs = np.zeros(slots, np.int64)  # of the same slots; untouched without a schedule
        self._counts: Longs = np.zeros((2 * len(CLOCKS), BUCKETS), np.int64)  # below: the last order's
        self._moments: Longs = np.zeros((2 * len(CLOCKS), 3), np.int64)
        self._moments[:, _MIN] = 2**62
        self._sampled: Longs = np.zeros(1 << 16, np.int64)
        self.by_type: Longs = np.zeros(256, np.int64)
        self.newest = self.last_id = 0
        self.answered = 0

    def handed_over(self, count: int, now_ns: int, due: Longs | None = None) -> None:
        """The next `count` orders went at `now_ns`; where there is a schedule, `due` says when they should have."""
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
        """Double the tables, which hold orders up to `newest`: more are unanswered than they have room for."""
        size = len(self._handed)
        ids = np.arange(max(newest - size + 1, 0), newest + 1)
        self._handed, self._due = (_spread(table, ids) for table in (self._handed, self._due))

    def take(self, answers: FrameBatch, first: int, now_ns: int) -> tuple[int, Longs]:
        """Record answer frames from `first` on: (the first that is none of ours, ids of sampled orders answered)."""
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
        """What was counted since the last call, by clock; the `last` order is apart: analysis leaves it out."""
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
    """The slots of ids first.., up to the table's end, and from its start on."""
    start = first & (len(table) - 1)
    wrapped = max(start + count - len(table), 0)
    return table[start : start + count - wrapped], table[:wrapped]


def _spread(table: Longs, ids: Longs) -> Longs:
    """A table of twice the size that holds the same for these ids."""
    double = np.zeros(2 * len(table), np.int64)
    double[ids & (len(double) - 1)] = table[ids & (len(table) - 1)]
    return double
