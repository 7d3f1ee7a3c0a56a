"""The calls that a Redis link lends: receive, send and sleep in its connections' buffers; see transports/lending.py.

The calls ask for Python, by the notice, at a value that is neither a frame nor a reply that they count, and when the
link's next check of its peers is due. A sleep watches the connection for messages alone: replies are taken by the next
`receive`.
"""

from __future__ import annotations

from collections.abc import Callable

from numba import njit

from transports import blocks, compiled_stream, frames, server_stream
from transports.blocks import lay_out
from transports.compiled_stream import fill, flush
from transports.frames import Bytes, Longs
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
from transports.redis import connection, places, protocol
from transports.redis.places import (
    ACKNOWLEDGE,
    ACKNOWLEDGE_BYTES,
    COMMANDS,
    COMMANDS_FD,
    COMMANDS_IN,
    COMMANDS_IN_END,
    COMMANDS_OUT,
    COMMANDS_OUT_END,
    EXPECTED,
    EXPECTED_BYTES,
    HEAD,
    HEAD_BYTES,
    MESSAGES,
    MESSAGES_FD,
    MESSAGES_IN,
    MESSAGES_IN_END,
    MESSAGES_OUT,
    MESSAGES_OUT_END,
    NEW_IDS,
    OLD_IDS,
    POLLFD,
    READ,
    READ_BYTES,
    READING,
    REPLIES,
    SENT,
    TIMER_NS,
    TIMESPEC,
    TOO_LONG,
    TRIM,
    TRIM_BYTES,
    UNHEARD,
)
from transports.redis.protocol import (
    IDS_BYTES,
    INCOMPLETE,
    IS_READ,
    OTHER,
    READING_PLACES,
    lay_out_read,
    scan_entries,
    scan_messages,
    scan_replies,
)
from transports.redis.wires import Wires
from transports.server_stream import BEGIN, END, UNSENT_END

_FROZEN = (frames, blocks, protocol, connection, places, compiled_stream, server_stream)


@njit(inline="always")
def _take_replies(numbers: Longs, memory: Bytes) -> None:
    """Count the replies that have come, if some are due; the notice at anything else."""
    if numbers[REPLIES] == numbers[SENT]:
        return
    incoming = memory[COMMANDS_IN:COMMANDS_IN_END]
    fill(numbers, COMMANDS, numbers[COMMANDS_FD], incoming)
    why, at, replies, unheard = scan_replies(incoming, numbers[COMMANDS + BEGIN], numbers[COMMANDS + END])
    numbers[COMMANDS + BEGIN] = at
    numbers[REPLIES] += replies
    numbers[UNHEARD] += unheard
    numbers[NOTICE] |= why == OTHER


@njit(inline="always")
def _take_messages(
    numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int
) -> tuple[int, int]:
    """Append the frames of channels that wait. Returns why that ended, and the batch's new count."""
    why, at, count, too_long = scan_messages(
        memory[MESSAGES_IN:MESSAGES_IN_END],
        numbers[MESSAGES + BEGIN],
        numbers[MESSAGES + END],
        memory[EXPECTED : EXPECTED + numbers[EXPECTED_BYTES]],
        largest,
        buffer,
        offsets,
        count,
    )
    numbers[MESSAGES + BEGIN] = at
    numbers[TOO_LONG] += too_long
    numbers[NOTICE] |= why == OTHER or too_long > 0
    return why, count


@njit(inline="always")
def _take_entries(
    numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int
) -> tuple[int, int]:
    """Append the frames of a stream that wait. Returns why that ended, and the batch's new count."""
    why, at, count, too_long = scan_entries(
        memory[MESSAGES_IN:MESSAGES_IN_END],
        numbers[MESSAGES + BEGIN],
        numbers[MESSAGES + END],
        memory[EXPECTED : EXPECTED + numbers[EXPECTED_BYTES]],
        largest,
        buffer,
        offsets,
        count,
        numbers[READING : READING + READING_PLACES],
        memory[NEW_IDS : NEW_IDS + IDS_BYTES],
    )
    numbers[MESSAGES + BEGIN] = at
    numbers[TOO_LONG] += too_long
    numbers[NOTICE] |= why == OTHER or too_long > 0
    return why, count


@njit(inline="always")
def _read_on(numbers: Longs, memory: Bytes) -> None:
    """Acknowledge the read whose last entry has been taken, and ask for more."""
    outgoing = memory[MESSAGES_OUT:MESSAGES_OUT_END]
    used = lay_out_read(
        numbers[READING : READING + READING_PLACES],
        memory[OLD_IDS : OLD_IDS + IDS_BYTES],
        memory[NEW_IDS : NEW_IDS + IDS_BYTES],
        memory[ACKNOWLEDGE : ACKNOWLEDGE + numbers[ACKNOWLEDGE_BYTES]],
        memory[TRIM : TRIM + numbers[TRIM_BYTES]],
        memory[READ : READ + numbers[READ_BYTES]],
        outgoing,
        numbers[MESSAGES + UNSENT_END],
    )
    flush(numbers, MESSAGES, numbers[MESSAGES_FD], outgoing, used)


@lendable(RECEIVE, *_FROZEN)
def _receive_messages(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    why, new_count = _take_messages(numbers, memory, buffer, offsets, count, largest)
    if new_count == count and why == INCOMPLETE:
        fill(numbers, MESSAGES, numbers[MESSAGES_FD], memory[MESSAGES_IN:MESSAGES_IN_END])
        why, new_count = _take_messages(numbers, memory, buffer, offsets, count, largest)
    _take_replies(numbers, memory)
    return new_count


@lendable(RECEIVE, *_FROZEN)
def _receive_entries(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    why, new_count = _take_entries(numbers, memory, buffer, offsets, count, largest)
    if new_count == count and why == INCOMPLETE:
        fill(numbers, MESSAGES, numbers[MESSAGES_FD], memory[MESSAGES_IN:MESSAGES_IN_END])
        why, new_count = _take_entries(numbers, memory, buffer, offsets, count, largest)
    if numbers[READING + IS_READ]:
        _read_on(numbers, memory)
    _take_replies(numbers, memory)
    return new_count


@lendable(SEND, *_FROZEN)
def _send(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, first: int, end: int) -> int:
    head = memory[HEAD : HEAD + numbers[HEAD_BYTES]]
    outgoing = memory[COMMANDS_OUT:COMMANDS_OUT_END]
    taken, used = lay_out(buffer, offsets, first, end, head, outgoing, numbers[COMMANDS + UNSENT_END])
    numbers[SENT] += taken - first
    flush(numbers, COMMANDS, numbers[COMMANDS_FD], outgoing, used)
    return taken


@lendable(SLEEP, *_FROZEN)
def _sleep(numbers: Longs, _memory: Bytes, until_ns: int) -> None:
    timespec = numbers[TIMESPEC : TIMESPEC + 2]
    news = poll(numbers[POLLFD:TIMESPEC], timespec, min(until_ns, numbers[TIMER_NS]))
    numbers[NOTICE] |= news != 0 or monotonic_ns(timespec) >= numbers[TIMER_NS]


def lent_calls(wires: Wires, is_stream: bool, timer_ns: int, settle: Callable[[], None]) -> Lent:
    """The calls of a link that has nothing unsent; `timer_ns`: the time of the link's next check of its peers."""
    numbers = wires.numbers
    numbers[POLLFD] = pollfd(wires.messages.fd)
    numbers[TIMER_NS] = timer_ns
    receive = _receive_entries if is_stream else _receive_messages
    return Lent(receive, _send, _sleep, numbers, wires.memory, settle, pollfds=numbers[POLLFD:TIMESPEC])
