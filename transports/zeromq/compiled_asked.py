"""A ROUTER's calls for requests and answers, compiled: as transports/zeromq/compiled.py, in two parts a message."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import zmq
from numba import njit

from transports.frames import ANSWERED, RECEIVED, FrameBatch, ReturnAddresses
from transports.zeromq.compiled import _DONTWAIT, _EAGAIN, _EINTR, CompiledCalls, _errno, _recv, _send

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
_SNDMORE, _GONE = int(zmq.SNDMORE), int(zmq.EHOSTUNREACH)


@njit(cache=True, nogil=True)
def _send_answers(
    handle: int, buffer: Bytes, offsets: Longs, first: int, count: int, addresses: Bytes, lengths: Longs, ends: Longs
) -> tuple[int, int]:
    """(first frame not taken, errno or 0). What goes to who has gone is dropped."""
    start = buffer.ctypes.data
    i = first
    while i < count:
        place = ends[ANSWERED] % len(lengths)
        sent = _send(handle, addresses[place].ctypes.data, lengths[place], _DONTWAIT | _SNDMORE)
        while sent >= 0 and _send(handle, start + offsets[i], offsets[i + 1] - offsets[i], _DONTWAIT) < 0:
            if _errno() != _EINTR:
                return i, _errno()
        error = _errno() if sent < 0 else 0
        if error == _EINTR:
            continue
        if error not in (0, _GONE):
            return i, 0 if error == _EAGAIN else error
        ends[ANSWERED] += 1
        i += 1
    return count, 0


@njit(cache=True, nogil=True)
def _receive_requests(
    handle: int, buffer: Bytes, offsets: Longs, count: int, largest: int, addresses: Bytes, lengths: Longs, ends: Longs
) -> tuple[int, int, int]:
    """(new count, frames dropped because they were too long, errno or 0). Both parts of a message come together."""
    start = buffer.ctypes.data
    dropped = 0
    while (
        count + 1 < len(offsets)
        and offsets[count] + largest <= len(buffer)
        and ends[RECEIVED] - ends[ANSWERED] < len(lengths)
    ):
        place = ends[RECEIVED] % len(lengths)
        identity = _recv(handle, addresses[place].ctypes.data, addresses.shape[1], _DONTWAIT)
        if identity < 0:
            error = _errno()
            if error == _EINTR:
                continue
            return count, dropped, 0 if error == _EAGAIN else error
        length = _recv(handle, start + offsets[count], largest, _DONTWAIT)
        while length < 0 and _errno() == _EINTR:
            length = _recv(handle, start + offsets[count], largest, _DONTWAIT)
        if length < 0:
            return count, dropped, _errno()
        if length > largest:
            dropped += 1
            continue
        lengths[place] = identity
        ends[RECEIVED] += 1
        offsets[count + 1] = offsets[count] + length
        count += 1
    return count, dropped, 0


class CompiledAskedCalls(CompiledCalls):
    def __init__(self, socket: zmq.Socket[bytes], watched: list[int]) -> None:
        self._returns = ReturnAddresses()
        super().__init__(socket, watched)

    def send(self, batch: FrameBatch, first: int) -> int:
        returns = self._returns
        taken, error = _send_answers(
            self._handle, batch.buffer, batch.offsets, first, batch.count, returns.addresses, returns.lengths,
            returns.ends,
        )  # fmt: skip
        if error:
            raise zmq.ZMQError(error)
        return int(taken)

    def receive(self, batch: FrameBatch) -> int:
        returns = self._returns
        count, dropped, error = _receive_requests(
            self._handle, batch.buffer, batch.offsets, batch.count, batch.largest_frame, returns.addresses,
            returns.lengths, returns.ends,
        )  # fmt: skip
        batch.count = int(count)
        if error:
            raise zmq.ZMQError(error)
        return int(dropped)
