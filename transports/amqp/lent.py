"""The calls that an AMQP connection lends: they publish and scan as `compiled.py` does, in the same buffers.

They serve the guarantee `lossy`, in which nothing is acknowledged or confirmed. A frame that is for pika stays where it
is, and Python is asked for; pika's timers ask for it too.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from transports.amqp import layout, scanner, wire
from transports.amqp.connection import BEGIN, END, FIRST, INCOMING_BYTES, LAST, OTHERS, OUTGOING_BYTES, Stream
from transports.amqp.layout import Layout, lay_out
from transports.amqp.scanner import STATE_NUMBERS, Scanner, Stop, scan_frames
from transports.frames import LONGEST_FRAME, Bytes, Longs
from transports.lending import (
    AT_ONCE,
    NOTICE,
    RECEIVE,
    SEND,
    SLEEP,
    Lent,
    lendable,
    monotonic_ns,
    poll,
    pollfd,
    receive_bytes,
    send_bytes,
)

_FD, _TIMER_NS, _PUBLISHED, _SCANNED, _CHANNEL, _MOST_BODY, _HEAD_BYTES, _LENGTH_AT, _POLLFD = range(OTHERS, OTHERS + 9)
_TIMESPEC = _POLLFD + 1
_ENDS = _TIMESPEC + 2
"""The place of `ends`, which the scanner takes for return addresses; lent calls have none."""
_STATE = _ENDS + 2
_OUTGOING, _PIECES = INCOMING_BYTES, INCOMING_BYTES + OUTGOING_BYTES
"""Places in the stream's memory: bytes to send, then room to put together a message of several frames."""
_HEAD = _PIECES + LONGEST_FRAME
_NOT_FOR_US = Stop.FOREIGN.value, Stop.BROKEN.value


@lendable(RECEIVE, scanner, wire)
def _receive(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    begin, end = numbers[BEGIN], numbers[END]
    if begin == end:
        begin = end = 0
    elif end == INCOMING_BYTES:
        for i in range(begin, end):
            memory[i - begin] = memory[i]
        begin, end = 0, end - begin
    if end < INCOMING_BYTES:
        came = receive_bytes(numbers[_FD], memory[end:].ctypes, INCOMING_BYTES - end, AT_ONCE)
        numbers[NOTICE] |= came == 0  # the broker has closed the connection
        end += max(came, 0)
    state = numbers[_STATE : _STATE + STATE_NUMBERS]
    too_long = state[scanner.TOO_LONG]
    why, at, count, frame = scan_frames(
        memory[:INCOMING_BYTES], begin, end, largest, state, memory[:0], memory[_PIECES:_HEAD],
        buffer, offsets, count, memory[:0].reshape(0, 1), numbers[:0], numbers[_ENDS:_STATE],
    )  # fmt: skip
    if why in _NOT_FOR_US:
        at = frame
    numbers[NOTICE] |= why in _NOT_FOR_US or state[scanner.TOO_LONG] > too_long
    numbers[_SCANNED] += at - begin
    numbers[BEGIN], numbers[END] = at, end
    return count


@lendable(SEND, layout, wire)
def _send(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, first: int, end: int) -> int:
    taken, last = lay_out(
        buffer, offsets, first, end, memory[_HEAD : _HEAD + numbers[_HEAD_BYTES]], numbers[_LENGTH_AT], 0, 0,
        numbers[_CHANNEL], numbers[_MOST_BODY], memory[_OUTGOING:_PIECES], numbers[LAST],
    )  # fmt: skip
    numbers[_PUBLISHED] += taken - first
    at = numbers[FIRST]
    while at < last:
        went = send_bytes(numbers[_FD], memory[_OUTGOING + at :].ctypes, last - at, AT_ONCE)
        if went <= 0:
            numbers[FIRST], numbers[LAST], numbers[NOTICE] = at, last, 1
            return taken
        at += went
    numbers[FIRST] = numbers[LAST] = 0
    return taken


@lendable(SLEEP)
def _sleep(numbers: Longs, _memory: Bytes, until_ns: int) -> None:
    timespec = numbers[_TIMESPEC:_ENDS]
    news = poll(numbers[_POLLFD:_TIMESPEC], timespec, min(until_ns, numbers[_TIMER_NS]))
    numbers[NOTICE] |= news != 0 or monotonic_ns(timespec) >= numbers[_TIMER_NS]


class LentCalls:
    """The lent calls of one stream, whose scanner goes on in the stream's arrays."""

    def __init__(self, stream: Stream, scanned: Scanner) -> None:
        self._stream = stream
        self._layout: Layout | None = None
        numbers = stream.numbers
        scanned.move_to(numbers[_STATE : _STATE + STATE_NUMBERS], stream.memory[_PIECES:_HEAD])
        numbers[_FD], numbers[_POLLFD] = stream.fd, pollfd(stream.fd)

    def lend(self, messages: Layout, timer_ns: int, settle: Callable[[], None]) -> Lent:
        """The calls, for messages of this layout, until pika's next timer."""
        numbers, memory = self._stream.numbers, self._stream.memory
        if messages is not self._layout:
            self._layout = messages
            memory[_HEAD : _HEAD + len(messages.head)] = messages.head
            numbers[_HEAD_BYTES], numbers[_LENGTH_AT] = len(messages.head), messages.length_at
            numbers[_CHANNEL], numbers[_MOST_BODY] = messages.channel, messages.most_body
        numbers[_TIMER_NS] = timer_ns
        numbers[NOTICE] |= timer_ns <= time.monotonic_ns()
        return Lent(_receive, _send, _sleep, numbers, memory, settle)

    def take_counts(self) -> tuple[int, int]:
        """Reset the notice, and the counts that it returns: (messages published, bytes scanned)."""
        numbers = self._stream.numbers
        published, scanned = int(numbers[_PUBLISHED]), int(numbers[_SCANNED])
        numbers[[NOTICE, _PUBLISHED, _SCANNED]] = 0
        return published, scanned
