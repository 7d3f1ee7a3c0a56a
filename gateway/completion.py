"""Completion times: pairs each answer with its order by id, and counts the order's times in log buckets.

An order has three times by the gateway's monotonic clock: when it was due; when it was handed over, read just before
the send call that took it; and when it was answered, read after the receive call that delivered its first answer. The
clock is read once for a whole batch, and one kernel call records it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from exchange import log_buckets, measurements, messages
from exchange.compiled import cached_kernel, field_reader
from exchange.log_buckets import log_bucket
from exchange.measurements import BUCKETS, CLOCKS, LogBuckets
from exchange.messages import (
    ANSWER_TYPES,
    LAYOUTS,
    Cancelled,
    Confirmation,
    Rejection,
    Replaced,
    Trade,
    sizes_by_code,
)
from gateway.due_times import NO_DUE_TIMES
from transports.frames import Bytes, FrameBatch, Longs, untouched

_SIZE_OF_ANSWER = sizes_by_code(ANSWER_TYPES)
SHORTEST_ANSWER = int(_SIZE_OF_ANSWER[_SIZE_OF_ANSWER > 0].min())
ORDER_ANSWERS = (Trade, Confirmation, Rejection, Cancelled, Replaced)
"""Answers that bear the id of an order or request. The first of them answers it."""
_ANSWERS_AN_ORDER = np.zeros(256, np.bool_)
_ANSWERS_AN_ORDER[[LAYOUTS[kind].code for kind in ORDER_ANSWERS]] = True
_order_id = field_reader("id", *ORDER_ANSWERS)
# Rows of `Tables.counts` and `Tables.moments`, in the order of CLOCKS.
_HANDED_OVER = 0
_DUE = 1
_LAG = 2
# Columns of `Tables.moments`.
_SUM = 0
_MIN = 1
_MAX = 2
_NONE_NS = 2**62
"""The minimum of a row without times."""
SAMPLED = 5
"""Number of columns of `Tables.sampled`."""
ANSWERED_COLUMN = 3
"""The column of `Tables.sampled` with the time at which the order was answered."""
RECEIVED_COLUMN = 4
"""The column of `Tables.sampled` with the number of messages that had come by then."""


@njit(inline="always")
def _is_answer_frame(buffer: Bytes, at: int, end: int) -> bool:
    while at < end:
        size = _SIZE_OF_ANSWER[buffer[at]]
        if size == 0:
            return False
        at += size
    return at == end


@njit(inline="always")
def _count(value_ns: int, clock: int, counts: Longs, moments: Longs) -> None:
    counts[clock, log_bucket(value_ns)] += 1
    moments[clock, _SUM] += value_ns
    moments[clock, _MIN] = min(moments[clock, _MIN], value_ns)
    moments[clock, _MAX] = max(moments[clock, _MAX], value_ns)


@njit(inline="always")
def _total(counts: Longs) -> int:
    """Return the sum of the counts. With `counts.sum()` numba would load linear algebra at each start."""
    total = 0
    for count in counts:
        total += count
    return total


@njit(inline="always")
def _last_of_pack(order_id: int, packing: int, last_id: int) -> int:
    """Return the last order of this order's pack, which cannot go before its last order is due."""
    last = order_id + (packing - order_id % packing) % packing
    return last_id if order_id <= last_id < last else last


class Tables(NamedTuple):
    """Orders that wait for their first answer, by slot (an id's low bits), and counts of those that got it."""

    handed: Longs
    """The time at which the slot's order was handed over; 0 if no order waits there."""
    due: Longs
    """The time at which the slot's order was due; not written if there is no schedule."""
    counts: Longs
    """Log buckets: a row for each clock, then a row for each clock with the run's last order alone."""
    moments: Longs
    """Sum, minimum and maximum of the times in each row of `counts`."""
    by_type: Longs
    """Number of answers by type byte."""
    sampled: Longs
    """A row for each sampled order that was answered since the last report.

    Its columns: the id; the times at which the order was handed over, due (0 without a schedule) and answered; and the
    number of messages that had come by then."""


class Rules(NamedTuple):
    """Settings that stay the same for the whole run."""

    scheduled: bool
    packing: int
    interval: int
    """Orders from one sample to the next."""


@njit(inline="always")
def have_free_slots(tables: Tables, first_id: int, count: int) -> bool:
    """Return whether the table of unanswered orders has a free slot for each of these orders."""
    free = count <= len(tables.handed)
    for order_id in range(first_id, first_id + count):
        free &= tables.handed[order_id & (len(tables.handed) - 1)] == 0
    return free


@njit(inline="always")
def await_answers(tables: Tables, first_id: int, count: int, handed_ns: int, due: Longs) -> None:
    """Note when these orders were handed over, and when they were due; `due` is empty without a schedule."""
    for i in range(count):
        slot = (first_id + i) & (len(tables.handed) - 1)
        tables.handed[slot] = handed_ns
        if len(due):
            tables.due[slot] = due[i]


@cached_kernel()
def note_handed_over(tables: Tables, first_id: int, count: int, handed_ns: int, due: Longs) -> bool:
    """Note orders that were handed over. Returns False, and notes nothing, if the tables lack room."""
    if not have_free_slots(tables, first_id, count):
        return False
    await_answers(tables, first_id, count, handed_ns, due)
    return True


@cached_kernel(log_buckets, measurements, messages)
def record_answers(
    buffer: Bytes,
    offsets: Longs,
    first: int,
    count: int,
    tables: Tables,
    rules: Rules,
    newest: int,
    last_id: int,
    now_ns: int,
    samples: int,
) -> tuple[int, int, int]:
    """Record the frames from `first` to `count` - 1, but stop at the first that does not hold answers alone.

    `samples` is the number of rows of `tables.sampled` that are filled already. Returns the frame at which it stopped,
    the number of orders that got their first answer, and the number of filled rows.
    """
    handed, due, counts, moments, by_type, sampled = tables
    scheduled, packing, interval = rules
    answered = 0
    clocks = len(counts) // 2
    for frame in range(first, count):
        at = offsets[frame]
        end = offsets[frame + 1]
        if not _is_answer_frame(buffer, at, end) or at == end:
            return frame, answered, samples
        while at < end:
            kind = buffer[at]
            by_type[kind] += 1
            record = at
            at = at + _SIZE_OF_ANSWER[kind]
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
                sampled[samples] = order_id, handed[slot], due[slot], now_ns, _total(by_type)
                samples += 1
            handed[slot] = 0
    return count, answered, samples


class Completion:
    """Orders that wait for their first answer, and the completion times of those that have it, in log buckets."""

    def __init__(self, scheduled: bool, sampling_interval: int, capacity: int = 1 << 14, packing: int = 1) -> None:
        self._clocks = CLOCKS if scheduled else CLOCKS[:1]
        self.rules = Rules(scheduled, packing, sampling_interval)
        slots = 1 << (capacity - 1).bit_length()
        self.tables = Tables(
            handed=np.zeros(slots, np.int64),
            due=np.zeros(slots, np.int64),
            **_empty_buckets(),
            by_type=np.zeros(256, np.int64),
            sampled=np.zeros((1 << 16, SAMPLED), np.int64),
        )
        self.newest = 0
        """The id of the latest order that was handed over."""
        self.last_id = 0
        """The id of the run's last order."""
        self.answered = 0
        """Orders that got their first answer."""

    @property
    def received(self) -> int:
        """Answers of every kind."""
        return int(self.tables.by_type.sum())

    def handed_over(self, count: int, now_ns: int, due: Longs = NO_DUE_TIMES) -> None:
        """Note that the next `count` orders were handed over at `now_ns`. `due` has their due times, if any."""
        while not note_handed_over(self.tables, self.newest + 1, count, now_ns, due):
            self._grow()
        self.newest += count

    def _grow(self) -> None:
        """Double the tables, which are full of unanswered orders."""
        size = len(self.tables.handed)
        ids = np.arange(max(self.newest - size + 1, 0), self.newest + 1)
        handed = _doubled(self.tables.handed, ids)
        due = _doubled(self.tables.due, ids)
        self.tables = self.tables._replace(handed=handed, due=due)

    def make_room_for_samples(self, answer_bytes: int) -> None:
        """Make room for the samples among this many bytes of answers."""
        if answer_bytes > len(self.tables.sampled) * SHORTEST_ANSWER:
            sampled = np.zeros((answer_bytes // SHORTEST_ANSWER + 1, SAMPLED), np.int64)
            self.tables = self.tables._replace(sampled=sampled)

    def take(self, answers: FrameBatch, first: int, now_ns: int) -> tuple[int, Longs]:
        """Record answer frames from `first` on, up to the first foreign frame.

        Returns that frame, or the end of the batch, and the rows of the sampled orders that were answered.
        """
        self.make_room_for_samples(answers.used_bytes)
        frame, answered, samples = record_answers(
            answers.buffer,
            answers.offsets,
            first,
            answers.count,
            self.tables,
            self.rules,
            self.newest,
            self.last_id,
            now_ns,
            0,  # filled rows of `sampled`
        )
        self.answered += int(answered)
        return int(frame), self.tables.sampled[: int(samples)]

    def close_second(self, last: bool = False) -> list[tuple[str, LogBuckets]]:
        """Return the times since the last call, by clock, and begin anew.

        With `last`, these are the times of the run's last order, which analysis leaves out; else those of all others.
        The tables get fresh memory, since to copy and to clear the old memory would take longer.
        """
        if last:
            rows_to_close = slice(len(CLOCKS), None)
            rows_to_keep = slice(len(CLOCKS))
        else:
            rows_to_close = slice(len(CLOCKS))
            rows_to_keep = slice(len(CLOCKS), None)
        closed = self.tables
        self.tables = self.tables._replace(**_empty_buckets())
        if (closed.moments[rows_to_keep, _MIN] != _NONE_NS).any():
            self.tables.counts[rows_to_keep] = closed.counts[rows_to_keep]
            self.tables.moments[rows_to_keep] = closed.moments[rows_to_keep]
        by_clock = zip(  # not strict: without a schedule, only the first clock has times
            self._clocks, closed.counts[rows_to_close], closed.moments[rows_to_close].tolist(), strict=False
        )
        return [
            (clock, LogBuckets(counts, *moments)) for clock, counts, moments in by_clock if moments[_MIN] != _NONE_NS
        ]


def _empty_buckets() -> dict[str, Longs]:
    """Return the tables `counts` and `moments` without any time in them."""
    moments = np.zeros((2 * len(CLOCKS), 3), np.int64)
    moments[:, _MIN] = _NONE_NS
    counts = untouched(2 * len(CLOCKS) * BUCKETS * moments.itemsize).view(np.int64)
    return {"counts": counts.reshape(-1, BUCKETS), "moments": moments}


def _doubled(table: Longs, ids: Longs) -> Longs:
    """Return a table of twice the size with the same values for these ids."""
    double = np.zeros(2 * len(table), np.int64)
    double[ids & (len(double) - 1)] = table[ids & (len(table) - 1)]
    return double
