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
from transports.frames import Bytes, Longs
from transports.lending import move_bytes

FRAME_SUBSCRIPTION = 1
"""The number of the subscription whose messages are frames. Further ones have numbers that begin with its digit."""

# Why a scan ended.
INCOMPLETE = 0
"""The next block has not come as a whole."""
FULL = 1
"""The batch has no room for the next frame."""
OTHER = 2
"""The next block is no frame."""
LONGEST_LINE = 4096
"""The longest control line that a server sends, in bytes."""

_SPACE = ord(" ")
_CARRIAGE_RETURN = ord("\r")
_NEWLINE = ord("\n")
_ZERO = ord("0")
_M = ord("M")
_S = ord("S")
_G = ord("G")
_SHORTEST_FRAME_LINE = len("MSG a 1 ")


@njit(cache=True, nogil=True)
def end_of_line(stream: Bytes, begin: int, end: int) -> int:
    """The place of the newline that ends the line at `begin`; -1 if it has not come."""
    for at in range(begin, end):
        if stream[at] == _NEWLINE:
            return at
    return -1


@njit(cache=True, nogil=True)
def is_frame_line(stream: Bytes, begin: int, newline: int) -> bool:
    """True if the line announces a message of a subscription whose number begins as FRAME_SUBSCRIPTION."""
    if (
        newline - begin < _SHORTEST_FRAME_LINE
        or stream[begin] != _M
        or stream[begin + 1] != _S
        or stream[begin + 2] != _G
    ):
        return False
    if stream[begin + 3] != _SPACE:
        return False
    at = begin + 4
    while at < newline and stream[at] != _SPACE:
        at += 1
    return at + 2 < newline and stream[at + 1] == _ZERO + FRAME_SUBSCRIPTION


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
def scan_frames(
    stream: Bytes, begin: int, end: int, largest: int, buffer: Bytes, offsets: Longs, count: int
) -> tuple[int, int, int, int]:
    """Copy the frames at the beginning of stream[begin:end] into a batch's arrays.

    Returns why it stopped, where the next block begins, the batch's new count, and how many frames were longer than
    `largest` bytes and were dropped.
    """
    at = begin
    too_long = 0
    while True:
        newline = end_of_line(stream, at, end)
        if newline < 0:
            return INCOMPLETE, at, count, too_long
        if not is_frame_line(stream, at, newline):
            return OTHER, at, count, too_long
        size = size_in_line(stream, newline)
        if size < 0:
            return OTHER, at, count, too_long
        payload = newline + 1
        if payload + size + 2 > end:
            return INCOMPLETE, at, count, too_long
        if size > largest:
            too_long += 1
        else:
            start = offsets[count]
            if count + 1 >= len(offsets) or start + size > len(buffer):
                return FULL, at, count, too_long
            move_bytes(buffer[start:].ctypes, stream[payload:].ctypes, size)
            count += 1
            offsets[count] = start + size
        at = payload + size + 2
