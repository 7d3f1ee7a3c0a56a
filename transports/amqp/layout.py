"""Messages to bytes: method, header and body frames of a whole batch laid out one after the other, by a kernel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from transports.amqp.wire import BODY, BODY_LENGTH_AT, FRAME_END, HEAD_BYTES, OVERHEAD_BYTES
from transports.frames import FrameBatch

Bytes = npt.NDArray[np.uint8]


@njit(inline="always")
def put_big_endian(out: Bytes, at: int, value: int, width: int) -> None:
    for k in range(width):
        out[at + k] = (value >> (8 * (width - 1 - k))) & 0xFF


@njit(cache=True, nogil=True)
def _lay_out(
    buffer: Bytes, offsets: npt.NDArray[np.int64], first: int, last: int, opening: Bytes, length_at: int,
    channel: int, most_body: int, out: Bytes, at: int,
) -> tuple[int, int]:  # fmt: skip
    """(the first message that found no room, where the bytes end)."""
    for message in range(first, last):
        start, length = offsets[message], offsets[message + 1] - offsets[message]
        bodies = (length + most_body - 1) // most_body
        if at + len(opening) + length + bodies * OVERHEAD_BYTES > len(out):
            return message, at
        out[at : at + len(opening)] = opening
        put_big_endian(out, at + length_at, length, 8)
        at += len(opening)
        done = 0
        while done < length:
            size = min(length - done, most_body)
            out[at] = BODY
            put_big_endian(out, at + 1, channel, 2)
            put_big_endian(out, at + 3, size, 4)
            out[at + HEAD_BYTES : at + HEAD_BYTES + size] = buffer[start + done : start + done + size]
            out[at + HEAD_BYTES + size] = FRAME_END
            at += size + OVERHEAD_BYTES
            done += size
    return last, at


class Layout:
    """What every publish of a link begins with: its method frame and its header frame."""

    def __init__(self, method: bytes, header: bytes, channel: int, frame_max: int) -> None:
        self._opening = np.frombuffer(method + header, np.uint8)
        self._length_at = len(method) + BODY_LENGTH_AT
        self._channel, self._most_body = channel, frame_max - OVERHEAD_BYTES

    def write(self, batch: FrameBatch, first: int, last: int, out: Bytes, at: int) -> tuple[int, int]:
        """Lay out messages first..last-1 at `out[at:]`: (the first without room, where the bytes end)."""
        message, end = _lay_out(
            batch.buffer, batch.offsets, first, last, self._opening, self._length_at,
            self._channel, self._most_body, out, at,
        )  # fmt: skip
        return int(message), int(end)
