"""The compiled calls of a topic: as transports/zeromq/compiled.py, with a key before each frame."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import zmq
from numba import njit

from transports.frames import LONGEST_FRAME, FrameBatch
from transports.topics import MOST_KEY_BYTES
from transports.zeromq.compiled import _DONTWAIT, _EAGAIN, _EINTR, CompiledCalls, _errno, _recv, _send

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def _send_keyed(
    handle: int, buffer: Bytes, offsets: Offsets, first: int, count: int, scratch: Bytes, key_bytes: int
) -> tuple[int, int]:
    """(first frame not taken, errno or 0). The key stands in `scratch` already."""
    for i in range(first, count):
        length = offsets[i + 1] - offsets[i]
        scratch[key_bytes : key_bytes + length] = buffer[offsets[i] : offsets[i + 1]]
        while _send(handle, scratch.ctypes.data, key_bytes + length, _DONTWAIT) < 0:
            error = _errno()
            if error != _EINTR:
                return i, 0 if error == _EAGAIN else error
    return count, 0


@njit(cache=True, nogil=True)
def _receive_keyed(
    handle: int, buffer: Bytes, offsets: Offsets, count: int, largest: int, scratch: Bytes
) -> tuple[int, int, int]:
    """(new count, frames dropped because they were too long or had no key, errno or 0)."""
    dropped = 0
    while count + 1 < len(offsets) and offsets[count] + largest <= len(buffer):
        length = _recv(handle, scratch.ctypes.data, len(scratch), _DONTWAIT)
        if length < 0:
            error = _errno()
            if error == _EINTR:
                continue
            return count, dropped, 0 if error == _EAGAIN else error
        begin = 1
        while begin <= length and scratch[begin - 1] != 0:
            begin += 1
        if length > len(scratch) or not 0 <= length - begin <= largest:
            dropped += 1
            continue
        end = offsets[count] + length - begin
        buffer[offsets[count] : end] = scratch[begin:length]
        count += 1
        offsets[count] = end
    return count, dropped, 0


class CompiledKeyedCalls(CompiledCalls):
    def __init__(self, socket: zmq.Socket[bytes], watched: list[int], prefix: bytes) -> None:
        self._scratch = np.zeros(LONGEST_FRAME + MOST_KEY_BYTES + 1, np.uint8)
        self._scratch[: len(prefix)] = np.frombuffer(prefix, np.uint8)
        self._key_bytes = len(prefix)
        super().__init__(socket, watched)

    def send(self, batch: FrameBatch, first: int) -> int:
        taken, error = _send_keyed(
            self._handle, batch.buffer, batch.offsets, first, batch.count, self._scratch, self._key_bytes
        )
        if error:
            raise zmq.ZMQError(error)
        return int(taken)

    def receive(self, batch: FrameBatch) -> int:
        count, dropped, error = _receive_keyed(
            self._handle, batch.buffer, batch.offsets, batch.count, batch.largest_frame, self._scratch
        )
        batch.count = int(count)
        if error:
            raise zmq.ZMQError(error)
        return int(dropped)
