"""The turns of an engine that several gateways share as one compiled call, over links that lend their calls.

A turn receives orders from each gateway that may have sent some, matches them, routes and sends their answers, and
sleeps on all links at once until the next order comes. Python is needed once a second, 20 ms after a sampled order, for
frames that are no orders, and if a link takes no more answers. Then the call returns, and the loop of `service.py` goes
on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types

from exchange import checksum, market_ids, messages
from exchange.checksum import State, StreamChecksum, hash_into
from exchange.compiled import as_i64, cached_kernel
from exchange.results import HashedStream
from matching_engine import arena as book_arena
from matching_engine import turns
from matching_engine.arena import COUNTERS, ORDERS
from matching_engine.engine import MatchingEngine
from matching_engine.kernels import DONE
from matching_engine.sessions import routing
from matching_engine.sessions.routing import OVERRUN, route, stamp
from matching_engine.sessions.session import AnswerQueues
from matching_engine.turns import HANDLE, LONGEST_WAIT_NS, EngineSamples, messages_in
from transports import lending, lent_table
from transports.frames import Bytes, FrameBatch, Longs
from transports.lending import NOTICE, RECEIVE, SEND, SIGNAL, SLEEP, Lent, idle_calls, monotonic_ns, poll
from transports.lent_table import FIRST_POLLFD, LINK_COLUMNS, MAY_HAVE_SENT, LentTable, memory_of, numbers_of

KEPT_BYTES = 1 << 20
"""Room for orders that Python writes to a file after the call."""

# Columns of `rows`, a LentTable's, which has a row for each gateway, by its number.
IS_SERVED = LINK_COLUMNS  # whether frames may come from it
UNSENT = LINK_COLUMNS + 1  # the first answer in its queue that its link has not taken
TAKEN = LINK_COLUMNS + 2  # orders that were taken from it in this call
SENT = LINK_COLUMNS + 3  # answers that its link took in this call
HAS_SPOKEN = LINK_COLUMNS + 4  # whether a frame came from it in this call
COLUMNS = LINK_COLUMNS + 5

_LONG = types.int64
_LONGS = types.int64[::1]
_BYTES = types.uint8[::1]
_TABLE = types.int64[:, ::1]
_BYTE_TABLE = types.uint8[:, ::1]
TURNS = types.UniTuple(_LONG, 7)(
    *map(types.FunctionType, (RECEIVE, SEND, SLEEP, HANDLE)),
    types.uint64[::1],
    types.uint32[::1],
    _BYTES,
    _LONGS,
    _LONG,
    _BYTES,
    _LONGS,
    _LONG,
    _TABLE,
    _BYTE_TABLE,
    _BYTE_TABLE,
    _BYTES,
    _BYTES,
    _BYTES,
    types.boolean,
    _BYTE_TABLE,
    _TABLE,
    _LONGS,
    _LONGS,
    _LONGS,
    _LONGS,
    _LONGS,
    _LONG,
    _TABLE,
    _LONG,
)


class SharedTurnsTaken(NamedTuple):
    """Result of a call of `take_turns`."""

    gateway: int
    """The gateway whose batch was not matched whole; 0 if every batch was."""
    first: int
    """The first frame of that batch that was not matched."""
    stamped: int
    """The first frame of that batch that was not taken as an order: it is none, or the end of the batch."""
    received: int
    """Frames in that batch."""
    kept_bytes: int
    """Bytes of orders that Python has to keep."""
    samples: int
    """Rows of `EngineSamples` that were filled."""
    goes_on: int
    """1 if the next turn may be compiled, too."""


@cached_kernel(checksum, market_ids, messages, book_arena, routing, turns, lending, lent_table, signature=TURNS)
def take_turns(  # noqa: PLR0912, PLR0915 - a turn is one compiled call
    receive: Any,
    send: Any,
    sleep: Any,
    handle: Any,
    arena: Any,
    index: Any,
    orders: Bytes,
    order_ends: Longs,
    largest_order: int,
    answers: Bytes,
    answer_ends: Longs,
    largest_answer: int,
    rows: Longs,
    order_sums: Bytes,
    answer_sums: Bytes,
    input_sum: State,
    market_sum: State,
    kept: Bytes,
    keeps: bool,
    queues: Bytes,
    ends: Longs,
    counts: Longs,
    states: Longs,
    undelivered: Longs,
    pollfds: Longs,
    owners: Longs,
    interval: int,
    samples: Any,
    until_ns: int,
) -> tuple[int, int, int, int, int, int, int]:
    """Take turns until `until_ns`, or until Python is needed.

    The links lend `receive`, `send` and `sleep`; `rows` say where the numbers and the memory of each link are.
    `pollfds` are the descriptors of all links, and `owners` the gateway of each. `order_sums` and `answer_sums` have
    the checksums of each gateway's two directions, `input_sum` and `market_sum` those of what the engine matched and
    answered. If it `keeps`, the orders lie in `kept` in place of being hashed into `input_sum`.
    """
    timespec = np.empty(2, np.int64)
    state = as_i64(arena)
    next_sampled = (messages_in(state) // interval + 1) * interval
    gateways = len(rows) - 1
    kept_end = 0
    noted = 0
    needs_python = False
    while True:
        has_moved = False
        for gateway in range(1, gateways + 1):
            if rows[gateway, IS_SERVED] == 0 or rows[gateway, MAY_HAVE_SENT] == 0:
                continue
            numbers = numbers_of(rows, gateway)
            received = receive(numbers, memory_of(rows, gateway), orders, order_ends, 0, largest_order)
            needs_python |= numbers[NOTICE] != 0
            if received == 0:
                rows[gateway, MAY_HAVE_SENT] = 0
                continue
            has_moved = True
            rows[gateway, HAS_SPOKEN] = 1
            stamped = stamp(orders, order_ends, 0, received, gateway, order_sums[gateway])
            rows[gateway, TAKEN] += stamped
            size = order_ends[stamped]
            if keeps:
                kept[kept_end : kept_end + size] = orders[:size]
                kept_end += size
            else:
                hash_into(input_sum, orders, 0, size)
            first = 0
            while first < stamped:
                why, first, _at, answered, _byte = handle(
                    orders,
                    order_ends,
                    first,
                    stamped,
                    0,  # the byte to begin at
                    1,  # records in a frame
                    answers,
                    answer_ends,
                    0,  # frames of answers so far
                    0,  # their end
                    largest_answer,
                    arena,
                    index,
                )
                hash_into(market_sum, answers, 0, answer_ends[answered])
                route(answers, answer_ends, 0, answered, queues, ends, counts, states, undelivered)
                if why != DONE and answered == 0:
                    break
            for other in range(1, gateways + 1):
                unsent = rows[other, UNSENT]
                count = counts[other]
                if states[other] == OVERRUN:
                    needs_python = True
                if unsent == count:
                    continue
                link_numbers = numbers_of(rows, other)
                taken = send(link_numbers, memory_of(rows, other), queues[other], ends[other], unsent, count)
                rows[other, SENT] += taken - unsent
                rows[other, MAY_HAVE_SENT] = 1  # the send may have consumed the event of an order
                hash_into(answer_sums[other], queues[other], ends[other, unsent], ends[other, taken])
                if taken < count:
                    rows[other, UNSENT] = taken
                    needs_python = True
                else:
                    rows[other, UNSENT] = 0
                    counts[other] = 0
                needs_python |= link_numbers[NOTICE] != 0
            if first < received:
                return gateway, first, stamped, received, kept_end, noted, 0
            if kept_end + len(order_ends) * 16 > len(kept):
                needs_python = True
            if needs_python:
                break
        if messages_in(state) >= next_sampled:
            next_sampled = (messages_in(state) // interval + 1) * interval
            samples[noted, 0] = monotonic_ns(timespec)
            for i in range(COUNTERS):
                samples[noted, 1 + i] = state[ORDERS + i]
            until_ns = min(until_ns, samples[0, 0] + LONGEST_WAIT_NS)
            noted += 1
            needs_python |= noted == len(samples)
        if needs_python or monotonic_ns(timespec) >= until_ns:
            break
        if has_moved:
            continue
        reason = poll(pollfds, timespec, until_ns)
        if reason == SIGNAL:
            break
        for i in range(len(pollfds)):
            if pollfds[i] >> 48:  # the field `revents`, the last two bytes
                gateway = owners[i]
                rows[gateway, MAY_HAVE_SENT] = 1
                if i != rows[gateway, FIRST_POLLFD] or reason != 0:
                    numbers = numbers_of(rows, gateway)
                    sleep(numbers, memory_of(rows, gateway), 0)  # it notes what Python has to do
                    needs_python |= numbers[NOTICE] != 0
        if needs_python:
            break
    return 0, 0, 0, 0, kept_end, noted, int(not needs_python)


class SharedTurns:
    """Takes the turns of one engine by compiled code."""

    def __init__(self, gateways: int) -> None:
        self._links = LentTable(1 + gateways, COLUMNS)
        self._kept: Bytes = np.zeros(KEPT_BYTES, np.uint8)

    def take(
        self,
        lent_of: Sequence[tuple[int, Lent]],
        engine: MatchingEngine,
        queues: AnswerQueues,
        orders: FrameBatch,
        answers: FrameBatch,
        samples: EngineSamples,
        input_stream: HashedStream,
        market_sum: HashedStream,
        until_ns: int,
    ) -> SharedTurnsTaken:
        """Take turns with the calls of the links of these gateways, for which no answers wait.

        `progress_of` says what each gateway sent and got. Of a batch that is not matched whole, the frames are in
        `orders`.
        """
        self._links.place(lent_of)
        for gateway, _ in lent_of:
            self._links.rows[gateway, IS_SERVED] = 1
        _, first_lent = lent_of[0]
        taken = SharedTurnsTaken(
            *take_turns(
                first_lent.receive,
                first_lent.send,
                first_lent.sleep,
                engine.kernel,
                engine.book.arena,
                engine.book.index,
                orders.buffer,
                orders.offsets,
                orders.largest_frame,
                answers.buffer,
                answers.offsets,
                answers.largest_frame,
                self._links.rows,
                queues.order_sums,
                queues.answer_sums,
                input_stream.state,
                market_sum.state,
                self._kept,
                input_stream.keeps_bytes,
                queues.buffers,
                queues.ends,
                queues.counts,
                queues.states,
                queues.undelivered,
                self._links.pollfds,
                self._links.owners,
                samples.interval,
                samples.rows,
                until_ns,
            )
        )
        if taken.kept_bytes:
            input_stream.update(self._kept[: taken.kept_bytes])
        return taken

    def progress_of(self, gateway: int) -> tuple[int, int, int, bool]:
        """Return what the last call did for a gateway: the arguments of GatewaySession.note_turns."""
        row = self._links.rows[gateway].tolist()
        return row[TAKEN], row[SENT], row[UNSENT], bool(row[HAS_SPOKEN])

    def warm(self, engine: MatchingEngine) -> None:
        """Load the kernel, and take no turn."""
        idle = idle_calls()
        nothing = FrameBatch(1)
        samples = EngineSamples(interval=1)
        self.take(
            [(1, idle)],
            engine,
            AnswerQueues(1),
            nothing,
            FrameBatch(1),
            samples,
            input_stream=StreamChecksum(),
            market_sum=StreamChecksum(),
            until_ns=0,
        )
