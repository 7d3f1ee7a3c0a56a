"""The data plane of NATS's text protocol, compiled: MSG blocks become frames.

Frames become PUB blocks in transports/blocks.py.

    MSG <subject> <subscription> [reply-to] <bytes>\\r\\n<payload>\\r\\n      from the server
    PUB <subject> <bytes>\\r\\n<payload>\\r\\n                               to the server

Only messages of subscriptions whose number begins with the digit of FRAME_SUBSCRIPTION are frames. Everything else that
the server sends (INFO, PING, PONG, +OK, -ERR, HMSG, messages of other subscriptions) stops the scan, and Python handles
it; see connection.py.
Source: the NATS client protocol, docs.nats.io/reference/reference-protocols/nats-protocol.
"""

from __future__ import annotations

from numba import njit

from transports.blocks import MOST_DIGITS
from transports.frames import ADDRESS_BYTES, ANSWERED, NOBODY, RECEIVED, Bytes, Longs
from transports.lending import move_bytes

FRAME_SUBSCRIPTION = 1
"""The number of the subscription whose messages are frames. Further ones have numbers that begin with its digit."""
ACKNOWLEDGEMENT_SUBSCRIPTION = 5
"""The number of the subscription to what a stream answers to the frames that it is to keep."""

# Why a scan ended.
INCOMPLETE = 0
"""The next block has not come as a whole."""
FULL = 1
"""The batch has no room for the next frame."""
OTHER = 2
"""The next block is no frame."""
MESSAGE = 3
"""The next block is a message of the subscription that was asked for; only `find_message` returns this."""
LONGEST_LINE = 4096
"""The longest control line that a server sends, in bytes."""

_SPACE = ord(" ")
_CARRIAGE_RETURN = ord("\r")
_NEWLINE = ord("\n")
_ZERO = ord("0")
_M = ord("M")
_S = ord("S")
_G = ord("G")
_SHORTEST_MESSAGE_LINE = len("MSG a 1 ")
_PUB = b"PUB "
_PUB_BYTES = len(_PUB)
_SPACES_WITH_REPLY = 4
"""Spaces in the line `MSG <subject> <subscription> <reply-to> <bytes>`."""
_KEPT = b'{"stream":'
"""The beginning of a stream's answer to a frame that it has kept; that of a refusal is `{"error":`."""


@njit(cache=True, nogil=True)
def end_of_line(stream: Bytes, begin: int, end: int) -> int:
    """The place of the newline that ends the line at `begin`; -1 if it has not come."""
    for at in range(begin, end):
        if stream[at] == _NEWLINE:
            return at
    return -1


@njit(cache=True, nogil=True)
def subscription_in_line(stream: Bytes, begin: int, newline: int) -> int:
    """The first digit of the number of the subscription to which a line announces a message; -1 for any other line."""
    if newline - begin < _SHORTEST_MESSAGE_LINE:
        return -1
    if stream[begin] != _M or stream[begin + 1] != _S or stream[begin + 2] != _G or stream[begin + 3] != _SPACE:
        return -1
    at = begin + 4
    while at < newline and stream[at] != _SPACE:
        at += 1
    if at + 2 >= newline or not _ZERO <= stream[at + 1] <= _ZERO + 9:
        return -1
    return stream[at + 1] - _ZERO


@njit(cache=True, nogil=True)
def size_in_line(stream: Bytes, newline: int) -> int:
    """The number that ends a line, before its carriage return; -1 if there is none."""
    at = newline - 1
    if stream[at] != _CARRIAGE_RETURN:
        return -1
    size = 0
    factor = 1
    digits = 0
    at -= 1
    while digits <= MOST_DIGITS and _ZERO <= stream[at] <= _ZERO + 9:
        size += (stream[at] - _ZERO) * factor
        factor *= 10
        digits += 1
        at -= 1
    if digits == 0 or digits > MOST_DIGITS or stream[at] != _SPACE:
        return -1
    return size


@njit(cache=True, nogil=True)
def find_message(stream: Bytes, begin: int, end: int, subscription: int) -> tuple[int, int, int]:
    """The message at the beginning of stream[begin:end], if the number of its subscription begins with this digit.

    Returns (MESSAGE, the place of the newline that ends its line, its size); the payload is right behind the newline.
    Else returns (INCOMPLETE or OTHER, `begin`, 0).
    """
    newline = end_of_line(stream, begin, end)
    if newline < 0:
        return INCOMPLETE, begin, 0
    if subscription_in_line(stream, begin, newline) != subscription:
        return OTHER, begin, 0
    size = size_in_line(stream, newline)
    if size < 0:
        return OTHER, begin, 0
    if newline + 1 + size + 2 > end:
        return INCOMPLETE, begin, 0
    return MESSAGE, newline, size


@njit(cache=True, nogil=True)
def _keep_address(stream: Bytes, begin: int, newline: int, addresses: Bytes, lengths: Longs, place: int) -> None:
    """Keep the beginning of the answer to the message in a line; NOBODY if the line names nobody to answer."""
    spaces = 0
    reply = 0
    last_space = 0
    for at in range(begin, newline):
        if stream[at] == _SPACE:
            spaces += 1
            reply = last_space + 1
            last_space = at
    length = last_space + 1 - reply  # with the space behind it
    if spaces < _SPACES_WITH_REPLY or _PUB_BYTES + length > ADDRESS_BYTES:
        lengths[place] = NOBODY
        return
    for at in range(_PUB_BYTES):
        addresses[place, at] = _PUB[at]
    move_bytes(addresses[place, _PUB_BYTES:].ctypes, stream[reply:].ctypes, length)
    lengths[place] = _PUB_BYTES + length


@njit(cache=True, nogil=True)
def scan_frames(
    stream: Bytes,
    begin: int,
    end: int,
    largest: int,
    buffer: Bytes,
    offsets: Longs,
    count: int,
    addresses: Bytes,
    lengths: Longs,
    counts: Longs,
) -> tuple[int, int, int, int]:
    """Copy the frames at the beginning of stream[begin:end] into a batch's arrays.

    `addresses`, `lengths` and `counts` are the arrays of ReturnAddresses, which keep to whom each frame's answer goes,
    as the beginning of its block: `PUB <subject> `. With a capacity of 0 they keep nothing.
    Returns why it stopped, where the next block begins, the batch's new count, and how many frames were longer than
    `largest` bytes and were dropped.
    """
    at = begin
    too_long = 0
    while True:
        why, newline, size = find_message(stream, at, end, FRAME_SUBSCRIPTION)
        if why != MESSAGE:
            return why, at, count, too_long
        payload = newline + 1
        if size > largest:
            too_long += 1
        else:
            start = offsets[count]
            if count + 1 >= len(offsets) or start + size > len(buffer):
                return FULL, at, count, too_long
            if len(lengths) > 0:
                if counts[RECEIVED] - counts[ANSWERED] >= len(lengths):
                    return FULL, at, count, too_long
                _keep_address(stream, at, newline, addresses, lengths, counts[RECEIVED] % len(lengths))
                counts[RECEIVED] += 1
            move_bytes(buffer[start:].ctypes, stream[payload:].ctypes, size)
            count += 1
            offsets[count] = start + size
        at = payload + size + 2


@njit(cache=True, nogil=True)
def count_acknowledgements(stream: Bytes, begin: int, end: int) -> tuple[int, int, int]:
    """Count the messages at the beginning of stream[begin:end] by which a stream says that it has kept a frame.

    Returns why it stopped (INCOMPLETE or OTHER), where the next block begins, and how many there were.
    """
    at = begin
    acknowledged = 0
    while True:
        why, newline, size = find_message(stream, at, end, ACKNOWLEDGEMENT_SUBSCRIPTION)
        if why != MESSAGE:
            return why, at, acknowledged
        payload = newline + 1
        if size < len(_KEPT):
            return OTHER, at, acknowledged
        for i in range(len(_KEPT)):
            if stream[payload + i] != _KEPT[i]:
                return OTHER, at, acknowledged
        acknowledged += 1
        at = payload + size + 2


def replies_to_long_messages(stream: Bytes, largest: int) -> list[str]:
    """Return the subject for the answer to each message longer than `largest` bytes, of those that `scan_frames` took.

    `stream` has whole messages only, each with a subject for its answer, as a stream of JetStream sends them.
    """
    replies: list[str] = []
    at = 0
    while at < len(stream):
        _, newline, size = find_message(stream, at, len(stream), FRAME_SUBSCRIPTION)
        words = stream[at:newline].tobytes().decode("ascii", "replace").split()
        if size > largest:
            replies.append(words[-2])
        at = newline + 1 + size + 2
    return replies
