"""The calls that a Redis link lends: receive, send and sleep in its connections' buffers; see transports/lending.py.

The calls ask for Python, by the notice, at a value that is neither a frame nor a reply that they count, and when the
link's next check of its peers is due. A sleep watches the connection for messages alone: replies are taken by the next
`receive`.
"""

from __future__ import annotations

from collections.abc import Callable

from numba import njit

from transports import blocks, server_stream
from transports.blocks import lay_out
from transports.frames import Bytes, Longs
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
from transports.redis import places, protocol
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
    IS_READ,
    OTHER,
    READING_PLACES,
    lay_out_read,
    scan_entries,
    scan_messages,
    scan_replies,
)
from transports.redis.wires import Wires
from transports.server_stream import BEGIN, END, UNSENT, UNSENT_END


@njit(inline="always")
def _fill(numbers: Longs, bounds: int, descriptor: int, incoming: Bytes) -> None:
    """Take in what has come on a connection; the notice if its server has closed it."""
    begin, end = numbers[bounds + BEGIN], numbers[bounds + END]
    if begin == end:
        begin = end = 0
    elif end == len(incoming):
        move_bytes(incoming.ctypes, incoming[begin:].ctypes, end - begin)
        begin, end = 0, end - begin
    if end < len(incoming):
        came = receive_bytes(descriptor, incoming[end:].ctypes, len(incoming) - end, AT_ONCE)
        numbers[NOTICE] |= came == 0
        end += max(came, 0)
    numbers[bounds + BEGIN], numbers[bounds + END] = begin, end


@njit(inline="always")
def _write(numbers: Longs, bounds: int, descriptor: int, outgoing: Bytes, used: int) -> None:
    """Send outgoing[:used]; the notice if some of it has to wait."""
    at = numbers[bounds + UNSENT]
    while at < used:
        went = send_bytes(descriptor, outgoing[at:].ctypes, used - at, AT_ONCE)
        if went <= 0:
            numbers[bounds + UNSENT], numbers[bounds + UNSENT_END], numbers[NOTICE] = at, used, 1
            return
        at += went
    numbers[bounds + UNSENT] = numbers[bounds + UNSENT_END] = 0


@njit(inline="always")
def _take_replies(numbers: Longs, memory: Bytes) -> None:
    """Count the replies that have come, if some are due; the notice at anything else."""
    if numbers[REPLIES] == numbers[SENT]:
        return
    incoming = memory[COMMANDS_IN:COMMANDS_IN_END]
    _fill(numbers, COMMANDS, numbers[COMMANDS_FD], incoming)
    why, at, replies, unheard = scan_replies(incoming, numbers[COMMANDS + BEGIN], numbers[COMMANDS + END])
    numbers[COMMANDS + BEGIN] = at
    numbers[REPLIES] += replies
    numbers[UNHEARD] += unheard
    numbers[NOTICE] |= why == OTHER


@lendable(RECEIVE, protocol, places, server_stream)
def _receive_messages(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    incoming = memory[MESSAGES_IN:MESSAGES_IN_END]
    _fill(numbers, MESSAGES, numbers[MESSAGES_FD], incoming)
    expected = memory[EXPECTED : EXPECTED + numbers[EXPECTED_BYTES]]
    begin, end = numbers[MESSAGES + BEGIN], numbers[MESSAGES + END]
    why, at, count, too_long = scan_messages(incoming, begin, end, expected, largest, buffer, offsets, count)
    numbers[MESSAGES + BEGIN] = at
    numbers[NOTICE] |= why == OTHER or too_long > 0
    numbers[TOO_LONG] += too_long
    _take_replies(numbers, memory)
    return count


@lendable(RECEIVE, protocol, places, server_stream)
def _receive_entries(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    incoming = memory[MESSAGES_IN:MESSAGES_IN_END]
    _fill(numbers, MESSAGES, numbers[MESSAGES_FD], incoming)
    expected = memory[EXPECTED : EXPECTED + numbers[EXPECTED_BYTES]]
    reading = numbers[READING : READING + READING_PLACES]
    new_ids = memory[NEW_IDS : NEW_IDS + IDS_BYTES]
    begin, end = numbers[MESSAGES + BEGIN], numbers[MESSAGES + END]
    why, at, count, too_long = scan_entries(
        incoming, begin, end, expected, largest, buffer, offsets, count, reading, new_ids
    )
    numbers[MESSAGES + BEGIN] = at
    numbers[NOTICE] |= why == OTHER or too_long > 0
    numbers[TOO_LONG] += too_long
    if reading[IS_READ]:
        outgoing = memory[MESSAGES_OUT:MESSAGES_OUT_END]
        used = lay_out_read(
            reading,
            memory[OLD_IDS : OLD_IDS + IDS_BYTES],
            new_ids,
            memory[ACKNOWLEDGE : ACKNOWLEDGE + numbers[ACKNOWLEDGE_BYTES]],
            memory[TRIM : TRIM + numbers[TRIM_BYTES]],
            memory[READ : READ + numbers[READ_BYTES]],
            outgoing,
            numbers[MESSAGES + UNSENT_END],
        )
        _write(numbers, MESSAGES, numbers[MESSAGES_FD], outgoing, used)
    _take_replies(numbers, memory)
    return count


@lendable(SEND, blocks, places, server_stream)
def _send(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, first: int, end: int) -> int:
    head = memory[HEAD : HEAD + numbers[HEAD_BYTES]]
    outgoing = memory[COMMANDS_OUT:COMMANDS_OUT_END]
    taken, used = lay_out(buffer, offsets, first, end, head, outgoing, numbers[COMMANDS + UNSENT_END])
    numbers[SENT] += taken - first
    _write(numbers, COMMANDS, numbers[COMMANDS_FD], outgoing, used)
    return taken


@lendable(SLEEP)
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
