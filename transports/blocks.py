"""Frames as blocks of a text protocol, compiled: a head, the frame's size in decimal digits, the frame.

<head><size>\\r\\n<frame>\\r\\n
"""

from __future__ import annotations

from numba import njit

from transports.frames import ANSWERED, Bytes, Longs
from transports.lending import move_bytes

MOST_DIGITS = 7
"""Digits of the size of the longest frame, 1 MiB."""
_CARRIAGE_RETURN = ord("\r")
_NEWLINE = ord("\n")
_ZERO = ord("0")
_OVERHEAD = MOST_DIGITS + 4
"""Bytes of a block beside its head and its frame, at most."""


@njit(cache=True, nogil=True)
def lay_out(buffer: Bytes, offsets: Longs, first: int, end: int, head: Bytes, out: Bytes, used: int) -> tuple[int, int]:
    """Write frames first..end-1 as blocks behind out[:used], while there is room.

    Returns the first frame that was not written, and the number of bytes used.
    """
    for index in range(first, end):
        start = offsets[index]
        size = offsets[index + 1] - start
        if used + len(head) + size + _OVERHEAD > len(out):
            return index, used
        move_bytes(out[used:].ctypes, head.ctypes, len(head))
        used += len(head)
        digits = 1
        rest = size // 10
        while rest:
            digits += 1
            rest //= 10
        rest = size
        for place in range(used + digits - 1, used - 1, -1):
            out[place] = _ZERO + rest % 10
            rest //= 10
        used += digits
        out[used] = _CARRIAGE_RETURN
        out[used + 1] = _NEWLINE
        used += 2
        move_bytes(out[used:].ctypes, buffer[start:].ctypes, size)
        used += size
        out[used] = _CARRIAGE_RETURN
        out[used + 1] = _NEWLINE
        used += 2
    return end, used


@njit(cache=True, nogil=True)
def lay_out_answers(
    buffer: Bytes,
    offsets: Longs,
    first: int,
    end: int,
    addresses: Bytes,
    lengths: Longs,
    counts: Longs,
    out: Bytes,
    used: int,
) -> tuple[int, int]:
    """Write answers first..end-1 behind out[:used], each to the asker of the oldest request, while there is room.

    Returns the first answer that was not written, and the number of bytes used. An answer to nobody is dropped.
    """
    for index in range(first, end):
        place = counts[ANSWERED] % len(lengths)
        if lengths[place] > 0:
            head = addresses[place, : lengths[place]]
            taken, used = lay_out(buffer, offsets, index, index + 1, head, out, used)
            if taken == index:
                return index, used
        counts[ANSWERED] += 1
    return end, used
