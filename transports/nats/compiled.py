"""The calls that a NATS link lends: receive, send and sleep in the connection's own buffers; see transports/lending.py.

The calls ask for Python, by the notice, at a block that is no frame, and when the link's next check of its peers is
due.
"""

from __future__ import annotations

from collections.abc import Callable

from numba import njit

from transports import blocks, compiled_stream, frames, server_stream
from transports.blocks import lay_out
from transports.compiled_stream import fill, flush
from transports.frames import ADDRESS_BYTES, Bytes, Longs
from transports.lending import (
    NOTICE,
    RECEIVE,
    SEND,
    SLEEP,
    Lent,
    lendable,
    monotonic_ns,
    poll,
    pollfd,
)
from transports.nats import connection, protocol
from transports.nats.connection import (
    BEGIN,
    BOUNDS_AT,
    DESCRIPTOR,
    END,
    HEAD,
    HEAD_BYTES,
    INCOMING_BYTES,
    OUTGOING,
    POLLFD,
    TIMER_NS,
    TIMESPEC,
    TOO_LONG,
    UNSENT_END,
    Connection,
)
from transports.nats.protocol import INCOMPLETE, OTHER, scan_frames

_FROZEN = (frames, blocks, protocol, connection, compiled_stream, server_stream)


@njit(inline="always")
def _take(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> tuple[int, int]:
    """Append the frames that wait. Returns why that ended, and the batch's new count."""
    no_addresses = memory[:0].reshape((0, ADDRESS_BYTES))
    why, at, count, too_long = scan_frames(
        memory[:INCOMING_BYTES],
        numbers[BEGIN],
        numbers[END],
        largest,
        buffer,
        offsets,
        count,
        no_addresses,
        numbers[:0],
        numbers[:0],
    )
    numbers[BEGIN] = at
    numbers[TOO_LONG] += too_long
    numbers[NOTICE] |= why == OTHER or too_long > 0
    return why, count


@lendable(RECEIVE, *_FROZEN)
def _receive(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    why, new_count = _take(numbers, memory, buffer, offsets, count, largest)
    if new_count == count and why == INCOMPLETE:
        fill(numbers, BOUNDS_AT, numbers[DESCRIPTOR], memory[:INCOMING_BYTES])
        why, new_count = _take(numbers, memory, buffer, offsets, count, largest)
    return new_count


@lendable(SEND, *_FROZEN)
def _send(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, first: int, end: int) -> int:
    head = memory[HEAD : HEAD + numbers[HEAD_BYTES]]
    outgoing = memory[OUTGOING:HEAD]
    taken, used = lay_out(buffer, offsets, first, end, head, outgoing, numbers[UNSENT_END])
    flush(numbers, BOUNDS_AT, numbers[DESCRIPTOR], outgoing, used)
    return taken


@lendable(SLEEP, *_FROZEN)
def _sleep(numbers: Longs, _memory: Bytes, until_ns: int) -> None:
    timespec = numbers[TIMESPEC : TIMESPEC + 2]
    news = poll(numbers[POLLFD:TIMESPEC], timespec, min(until_ns, numbers[TIMER_NS]))
    numbers[NOTICE] |= news != 0 or monotonic_ns(timespec) >= numbers[TIMER_NS]


def lent_calls(opened: Connection, timer_ns: int, settle: Callable[[], None]) -> Lent:
    """The calls of a connection that has nothing unsent; `timer_ns`: the time of the link's next check of its peers."""
    numbers = opened.numbers
    numbers[DESCRIPTOR], numbers[POLLFD] = opened.fd, pollfd(opened.fd)
    numbers[TIMER_NS] = timer_ns
    return Lent(_receive, _send, _sleep, numbers, opened.memory, settle, pollfds=numbers[POLLFD:TIMESPEC])
