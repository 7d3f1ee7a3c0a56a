"""The engine's turns as one compiled call, over a link that lends its calls.

A turn receives orders, matches them, writes them into the journal if there is one, sends their answers and sleeps until
the next order comes. Python is needed once a second, 20 ms after a sampled order, and for whatever the engine's kernel
does not take: the call then returns, and the loop of `service.py` goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numba import types

from exchange import checksum
from exchange.checksum import State, StreamChecksum, hash_into
from exchange.compiled import as_i64, cached_kernel, kernel
from matching_engine import arena as book_arena
from matching_engine.arena import COUNTERS, ORDERS
from matching_engine.engine import MatchingEngine
from matching_engine.kernels import DONE
from transports import lending
from transports.frames import Bytes, FrameBatch, Longs
from transports.lending import NO_MEMORY, NOTICE, RECEIVE, SEND, SLEEP, Lent, idle_calls, monotonic_ns

_LONG, _LONGS, _BYTES = types.int64, types.int64[::1], types.uint8[::1]
_ARENA, _INDEX, _ROWS = types.uint64[::1], types.uint32[::1], types.int64[:, ::1]
HANDLE = types.UniTuple(_LONG, 5)(
    _BYTES, _LONGS, _LONG, _LONG, _LONG, _LONG, _BYTES, _LONGS, _LONG, _LONG, _LONG, _ARENA, _INDEX
)
"""The type of every engine's kernel, so that the turn is compiled once for all."""
APPEND = types.boolean(_LONGS, _BYTES, _BYTES, _LONG, _LONG)
"""The type of a function that writes frames of orders into a journal; see journal_records.py."""
TURNS = types.UniTuple(_LONG, 10)(
    *map(types.FunctionType, (RECEIVE, SEND, SLEEP)),
    _LONGS,
    _BYTES,
    types.FunctionType(HANDLE),
    _LONG,
    _ARENA,
    _INDEX,
    types.FunctionType(APPEND),
    _LONGS,
    _BYTES,
    _BYTES,
    _LONGS,
    _LONG,
    _BYTES,
    _LONGS,
    _LONG,
    _LONG,
    _ROWS,
    _LONG,
    _BYTES,
    _BYTES,
)


def _append_nowhere(_numbers: Longs, _record: Bytes, _frames: Bytes, _begin: int, _end: int) -> bool:
    """Stand in for a journal."""
    return True


MOST_SAMPLES, LONGEST_WAIT_NS = 32, 20_000_000
"""Samples are reported together: once there are so many, so long after the first, or when the second ends."""
JournalCalls = tuple[Any, Longs, Bytes]
"""The compiled writer of an input journal's records, of the type APPEND, and its first two arguments."""
NO_JOURNAL: JournalCalls = kernel(_append_nowhere, APPEND), np.zeros(1, np.int64), NO_MEMORY


class Samples:
    """Room for what is noted after frames with a sampled order: when, and the counts of the book's state by then."""

    def __init__(self, interval: int) -> None:
        self.interval = interval
        """Orders from one sample to the next."""
        self.rows = np.zeros((MOST_SAMPLES, 1 + COUNTERS), np.int64)


@dataclass
class Sums:
    """The checksums of both directions."""

    orders: StreamChecksum = field(default_factory=StreamChecksum)
    answers: StreamChecksum = field(default_factory=StreamChecksum)


class Taken(NamedTuple):
    """Progress of the turns."""

    came: int
    """Received frames in memory. A frame is forgotten once all its answers were sent."""
    matched: int
    """Received frames that were matched whole; the loop in Python goes on with the next one."""
    at: int
    """The byte of that frame to go on at, where some of its orders were matched; its answers end at `byte`."""
    byte: int
    answers: int
    """Frames of answers."""
    sent: int
    """Frames of answers that were sent."""
    journaled: int
    """Frames of orders that are in the journal; fewer than `matched` if it could not be written."""
    samples: int
    """Samples that were noted; see `Samples`."""
    heard: int
    """1 if any frame came."""
    goes_on: int
    """1 if the next turn may be compiled too; 0 if it is the Python loop's, which can do everything."""


@cached_kernel(checksum, book_arena, lending, signature=TURNS)
def take_turns(
    receive: Any,
    send: Any,
    sleep: Any,
    numbers: Longs,
    memory: Bytes,
    handle: Any,
    packing: int,
    arena: Any,
    index: Any,
    append: Any,
    journal: Longs,
    record: Bytes,
    orders: Bytes,
    order_ends: Longs,
    largest_order: int,
    answers: Bytes,
    answer_ends: Longs,
    largest_answer: int,
    interval: int,
    samples: Any,
    until_ns: int,
    orders_sum: State,
    answers_sum: State,
) -> tuple[int, int, int, int, int, int, int, int, int, int]:
    """Take turns until `until_ns`, or until Python is needed: 20 ms after a sampled order, too.

    Orders whose answers were all sent are hashed and forgotten, and so are these answers. After a frame with a sampled
    order, `samples` gets a row: the time, then the counts of the book's state. Python reports it later: if it did so at
    once, that order's answers would wait in libzmq's thread for the processor.
    """
    timespec = np.empty(2, np.int64)
    state = as_i64(arena)
    next_sampled = (state[ORDERS] // interval + 1) * interval
    matched = journaled = count = sent = at = byte = noted = heard = 0
    is_stuck = False
    while True:
        came = receive(numbers, memory, orders, order_ends, matched, largest_order)
        if came > matched:
            heard = 1
            why, matched, at, count, byte = handle(
                orders,
                order_ends,
                matched,
                came,
                0,
                packing,
                answers,
                answer_ends,
                count,
                0,
                largest_answer,
                arena,
                index,
            )
            if matched > journaled and not append(journal, record, orders, order_ends[journaled], order_ends[matched]):
                is_stuck = True
                break
            journaled = matched
            sent = send(numbers, memory, answers, answer_ends, sent, count)
            is_stuck = why != DONE or sent < count
            if is_stuck:
                break
            hash_into(orders_sum, orders, 0, order_ends[matched])
            hash_into(answers_sum, answers, 0, answer_ends[sent])
            came = matched = journaled = count = sent = 0
            if state[ORDERS] >= next_sampled:
                next_sampled = (state[ORDERS] // interval + 1) * interval
                samples[noted, 0] = monotonic_ns(timespec)
                for i in range(COUNTERS):
                    samples[noted, 1 + i] = state[ORDERS + i]
                until_ns = min(until_ns, samples[0, 0] + LONGEST_WAIT_NS)
                noted += 1
                if noted == len(samples):
                    break
        else:
            sleep(numbers, memory, until_ns)
        if numbers[NOTICE] or monotonic_ns(timespec) >= until_ns:
            break
    goes_on = not is_stuck and numbers[NOTICE] == 0
    return came, matched, at, byte, count, sent, journaled, noted, heard, int(goes_on)


def take_lent(
    lent: Lent,
    engine: MatchingEngine,
    sums: Sums,
    journal: JournalCalls,
    orders: FrameBatch,
    answers: FrameBatch,
    samples: Samples,
    until_ns: int,
) -> Taken:
    """Take turns with the calls of a link; both batches are empty before."""
    append, numbers, record = journal
    taken = Taken(
        *take_turns(
            lent.receive,
            lent.send,
            lent.sleep,
            lent.numbers,
            lent.memory,
            engine.kernel,
            engine.packing,
            engine.book.arena,
            engine.book.index,
            append,
            numbers,
            record,
            orders.buffer,
            orders.offsets,
            orders.largest_frame,
            answers.buffer,
            answers.offsets,
            answers.largest_frame,
            samples.interval,
            samples.rows,
            until_ns,
            sums.orders.state,
            sums.answers.state,
        )
    )
    orders.count, answers.count = taken.came, taken.answers
    return taken


def warm_turns(engine: MatchingEngine) -> None:
    """Load the kernel, and take no turn."""
    take_lent(idle_calls(), engine, Sums(), NO_JOURNAL, FrameBatch(1), FrameBatch(1), Samples(1), 0)
