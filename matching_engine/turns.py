"""The engine's turns as one compiled call, over a link that lends its calls.

A turn receives orders, matches them, stores them if the engine keeps a journal, sends their answers, and sleeps until
the next order comes. Python is needed once a second, 20 ms after a sampled order, and for frames that the engine's
kernel does not match. Then the call returns, and the loop of `service.py` goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numba import types

from exchange import checksum
from exchange.checksum import State, StreamChecksum, hash_into
from exchange.compiled import as_i64, cached_kernel, inlined, kernel
from matching_engine import arena as book_arena
from matching_engine.arena import CANCELS, COUNTERS, ORDERS, REPLACES
from matching_engine.engine import MatchingEngine
from matching_engine.kernels import DONE
from transports import lending
from transports.frames import Bytes, FrameBatch, Longs
from transports.lending import NO_MEMORY, NOTICE, RECEIVE, SEND, SLEEP, Lent, idle_calls, monotonic_ns

_LONG = types.int64
_LONGS = types.int64[::1]
_BYTES = types.uint8[::1]
_ARENA = types.uint64[::1]
_INDEX = types.uint32[::1]
_ROWS = types.int64[:, ::1]
HANDLE = types.UniTuple(_LONG, 5)(
    _BYTES, _LONGS, _LONG, _LONG, _LONG, _LONG, _BYTES, _LONGS, _LONG, _LONG, _LONG, _ARENA, _INDEX
)
"""The type of every engine's kernel, so that `take_turns` is compiled once for all of them."""
STORE = types.boolean(_LONGS, _BYTES, _BYTES, _LONG, _LONG)
"""The type of a function that stores frames of orders before their answers are sent; `recovering/` has one."""
TURNS = types.UniTuple(_LONG, 10)(
    *map(types.FunctionType, (RECEIVE, SEND, SLEEP)),
    _LONGS,
    _BYTES,
    types.FunctionType(HANDLE),
    _LONG,
    _ARENA,
    _INDEX,
    types.FunctionType(STORE),
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


def _store_nowhere(_numbers: Longs, _record: Bytes, _frames: Bytes, _begin: int, _end: int) -> bool:
    """Store nothing, as in an ordinary run."""
    return True


MOST_SAMPLES = 32
LONGEST_WAIT_NS = 20_000_000
"""Samples are reported together: at MOST_SAMPLES, LONGEST_WAIT_NS after the first of them, or when the second ends."""
OrderStore = tuple[Any, Longs, Bytes]
"""A compiled function of the type STORE, and its first two arguments."""
NO_STORE: OrderStore = (kernel(_store_nowhere, STORE), np.zeros(1, np.int64), NO_MEMORY)


class EngineSamples:
    """Memory for samples: after a frame with a sampled order, a row gets the time and the book's counts."""

    def __init__(self, interval: int) -> None:
        self.interval = interval
        """Orders from one sample to the next."""
        self.rows = np.zeros((MOST_SAMPLES, 1 + COUNTERS), np.int64)


@dataclass
class Sums:
    """The checksums of both directions."""

    orders: StreamChecksum = field(default_factory=StreamChecksum)
    answers: StreamChecksum = field(default_factory=StreamChecksum)


class EngineTurnsTaken(NamedTuple):
    """Result of a call of `take_turns`."""

    received: int
    """Received frames in memory. A frame is forgotten once all its answers were sent."""
    matched: int
    """Received frames that were matched whole. The loop in Python goes on with the next frame."""
    at: int
    """The byte of the next frame to go on at, if some of its orders are matched already."""
    byte: int
    """The end of the answers to these orders."""
    answers: int
    """Frames of answers."""
    sent: int
    """Frames of answers that were sent."""
    stored: int
    """Frames of orders that were stored; fewer than `matched` if storing failed."""
    samples: int
    """Rows of `EngineSamples` that were filled."""
    has_received: int
    """1 if any frame came."""
    goes_on: int
    """1 if the next turn may be compiled, too; 0 if the loop in Python has to take it."""


@inlined
def messages_in(state: Longs) -> int:
    """Return the number of orders, cancels and replaces that a book has taken."""
    return state[ORDERS] + state[CANCELS] + state[REPLACES]


@cached_kernel(checksum, book_arena, lending, signature=TURNS)
def take_turns(  # noqa: PLR0915 - a turn is one compiled call
    receive: Any,
    send: Any,
    sleep: Any,
    link_numbers: Longs,
    link_memory: Bytes,
    handle: Any,
    packing: int,
    arena: Any,
    index: Any,
    store: Any,
    store_numbers: Longs,
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
    """Take turns until `until_ns`, or until Python is needed, which includes 20 ms after a sampled order.

    The link lends `receive`, `send` and `sleep`, and `link_numbers` and `link_memory`, which these three calls need.
    Orders whose answers were all sent are hashed and forgotten, and so are these answers. After a frame with a sampled
    order, `samples` gets a row: the time, then the counts of the book's state. Python reports the sample only later: at
    once, it would keep libzmq's thread, which sends that order's answers, from the processor.
    """
    timespec = np.empty(2, np.int64)
    state = as_i64(arena)
    next_sampled = (messages_in(state) // interval + 1) * interval
    matched = 0  # frames in `orders` that were matched: the first ones. A turn begins with none
    stored = 0  # frames in `orders` that were stored: the first ones, and no more than `matched`
    answered = 0  # frames in `answers`, the answers to the matched orders
    sent = 0  # frames in `answers` that were sent: the first ones, and no more than `answered`
    at = 0  # the byte to go on at in the frame after the matched ones, if some of its orders are matched already
    byte = 0  # the end of the answers to these orders
    noted = 0  # filled rows of `samples`
    has_received = 0  # 1 once any frame was received
    is_stuck = False  # whether the loop in Python has to go on
    while True:
        received = receive(link_numbers, link_memory, orders, order_ends, matched, largest_order)
        if received > matched:
            has_received = 1
            why, matched, at, answered, byte = handle(
                orders,
                order_ends,
                matched,
                received,
                0,  # the byte to begin at: no order of the first frame is matched yet
                packing,
                answers,
                answer_ends,
                answered,
                0,  # the end of the answers to its matched orders: there are none
                largest_answer,
                arena,
                index,
            )
            begin = order_ends[stored]
            end = order_ends[matched]
            if matched > stored:
                is_stored = store(store_numbers, record, orders, begin, end)
                if not is_stored:
                    is_stuck = True
                    break
            stored = matched
            sent = send(link_numbers, link_memory, answers, answer_ends, sent, answered)
            is_stuck = why != DONE or sent < answered
            if is_stuck:
                break
            hash_into(orders_sum, orders, 0, order_ends[matched])
            hash_into(answers_sum, answers, 0, answer_ends[sent])
            received = 0
            matched = 0
            stored = 0
            answered = 0
            sent = 0
            if messages_in(state) >= next_sampled:
                next_sampled = (messages_in(state) // interval + 1) * interval
                samples[noted, 0] = monotonic_ns(timespec)
                for i in range(COUNTERS):
                    samples[noted, 1 + i] = state[ORDERS + i]
                until_ns = min(until_ns, samples[0, 0] + LONGEST_WAIT_NS)
                noted += 1
                if noted == len(samples):
                    break
        else:
            sleep(link_numbers, link_memory, until_ns)
        is_time_up = monotonic_ns(timespec) >= until_ns
        if is_time_up or link_numbers[NOTICE]:
            break
    goes_on = not is_stuck and link_numbers[NOTICE] == 0
    return received, matched, at, byte, answered, sent, stored, noted, has_received, int(goes_on)


def take_lent(
    lent: Lent,
    engine: MatchingEngine,
    sums: Sums,
    order_store: OrderStore,
    orders: FrameBatch,
    answers: FrameBatch,
    samples: EngineSamples,
    until_ns: int,
) -> EngineTurnsTaken:
    """Take turns with the calls of a link. Both batches must be empty."""
    store, store_numbers, record = order_store
    taken = EngineTurnsTaken(
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
            store,
            store_numbers,
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
    orders.count = taken.received
    answers.count = taken.answers
    return taken


def warm_turns(engine: MatchingEngine) -> None:
    """Load the kernel, and take no turn."""
    take_lent(
        idle_calls(),
        engine,
        Sums(),
        NO_STORE,
        orders=FrameBatch(1),
        answers=FrameBatch(1),
        samples=EngineSamples(interval=1),
        until_ns=0,
    )
