"""The calls that a NATS link lends: receive, send and sleep in the connection's own buffers; see transports/lending.py.

The calls ask for Python, by the notice, at a block that is no frame, and when the link's next check of its peers is
due.
"""

from __future__ import annotations

from collections.abc import Callable

from transports import blocks, server_stream
from transports.blocks import lay_out
from transports.frames import ADDRESS_BYTES, Bytes, Longs
from transports.lending import (
    AT_ONCE,
    NOTICE,
    RECEIVE,
    SEND,
    SLEEP,
    Lent,
    lendable,
    monotonic_ns,
    move_bytes,
    poll,
    pollfd,
    receive_bytes,
    send_bytes,
)
from transports.nats import connection, protocol
from transports.nats.connection import (
    BEGIN,
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
    UNSENT,
    UNSENT_END,
    Connection,
)
from transports.nats.protocol import OTHER, scan_frames


@lendable(RECEIVE, protocol, connection, server_stream)
def _receive(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    begin, end = numbers[BEGIN], numbers[END]
    if begin == end:
        begin = end = 0
    elif end == INCOMING_BYTES:
        move_bytes(memory.ctypes, memory[begin:].ctypes, end - begin)
        begin, end = 0, end - begin
    if end < INCOMING_BYTES:
        came = receive_bytes(numbers[DESCRIPTOR], memory[end:].ctypes, INCOMING_BYTES - end, AT_ONCE)
        numbers[NOTICE] |= came == 0  # the server has closed the connection
        end += max(came, 0)
    no_addresses = memory[:0].reshape((0, ADDRESS_BYTES))
    incoming = memory[:INCOMING_BYTES]
    why, at, count, too_long = scan_frames(
        incoming, begin, end, largest, buffer, offsets, count, no_addresses, numbers[:0], numbers[:0]
    )
    numbers[NOTICE] |= why == OTHER or too_long > 0
    numbers[TOO_LONG] += too_long
    numbers[BEGIN], numbers[END] = at, end
    return count


@lendable(SEND, blocks, connection, server_stream)
def _send(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, first: int, end: int) -> int:
    head = memory[HEAD : HEAD + numbers[HEAD_BYTES]]
    outgoing = memory[OUTGOING:HEAD]
    taken, used = lay_out(buffer, offsets, first, end, head, outgoing, numbers[UNSENT_END])
    at = numbers[UNSENT]
    while at < used:
        went = send_bytes(numbers[DESCRIPTOR], outgoing[at:].ctypes, used - at, AT_ONCE)
        if went <= 0:
            numbers[UNSENT], numbers[UNSENT_END], numbers[NOTICE] = at, used, 1
            return taken
        at += went
    numbers[UNSENT] = numbers[UNSENT_END] = 0
    return taken


@lendable(SLEEP)
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
