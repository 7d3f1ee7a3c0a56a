"""The calls of a ZeroMQ socket for batches, compiled over the libzmq that pyzmq has loaded.

Python runs once a batch, compiled code once a message. Importing this module raises ImportError if the library hides
its symbols, as in some wheels; transports/zeromq/link.py then uses pyzmq's own calls.
"""

from __future__ import annotations

import ctypes
import errno
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding
import numpy as np
import numpy.typing as npt
import zmq
import zmq.backend
from numba import njit, types

from transports.frames import Bytes, FrameBatch, Longs
from transports.lending import NO_MEMORY, NOTICE, OTHERS, RECEIVE, SEND, SLEEP, Lent, lendable, poll, pollfd
from transports.waiting import HAS_PPOLL
from transports.zeromq.calls import PlainCalls, Socket

_SIGNATURES = {
    "zmq_send": types.int32(types.uintp, types.uintp, types.uintp, types.int32),
    "zmq_recv": types.int32(types.uintp, types.uintp, types.uintp, types.int32),
    "zmq_errno": types.int32(),
    "zmq_getsockopt": types.int32(types.uintp, types.int32, types.voidptr, types.voidptr),
}


def _external(library: ctypes.CDLL, name: str) -> Any:
    """A function that compiled code calls by name, so that the compiled code can be cached on disk."""
    try:
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError as error:
        raise ImportError(f"pyzmq's library shows no {name}") from error
    symbol = f"exchange_{name}"
    llvmlite.binding.add_symbol(symbol, address)
    return types.ExternalFunction(symbol, _SIGNATURES[name])


_library = ctypes.CDLL(inspect.getfile(zmq.backend.Socket))
"""The extension module in which pyzmq's own socket lives: libzmq is a part of it, or is linked to it."""
_send = _external(_library, "zmq_send")
_recv = _external(_library, "zmq_recv")
_errno = _external(_library, "zmq_errno")
_getsockopt = _external(_library, "zmq_getsockopt")
DONTWAIT = int(zmq.DONTWAIT)
_EVENTS = int(zmq.EVENTS)
_EAGAIN = errno.EAGAIN
_EINTR = errno.EINTR
_WAIT = 0
"""The flags of a call that blocks."""
_MOMENT_MS = 50
"""The longest time for which such a call blocks."""


@njit(inline="always")
def send_part(handle: int, at: int, length: int, flags: int) -> tuple[bool, int]:
    """Send the bytes at an address; returns (whether the socket took them, errno or 0 if it only has no room)."""
    while _send(handle, at, length, flags) < 0:
        error = _errno()
        if error == _EAGAIN:
            return False, 0
        if error != _EINTR:
            return False, error
    return True, 0


@njit(inline="always")
def receive_part(handle: int, at: int, most: int, flags: int = DONTWAIT) -> tuple[int, int]:
    """Receive to an address; returns (the length, which may be more than `most`, or -1; errno or 0 if none came)."""
    while True:
        length = _recv(handle, at, most, flags)
        if length >= 0:
            return length, 0
        error = _errno()
        if error == _EAGAIN:
            return -1, 0
        if error != _EINTR:
            return -1, error


@njit(cache=True, nogil=True)
def _send_frames(handle: int, buffer: Bytes, offsets: Longs, first: int, count: int) -> tuple[int, int]:
    """Send frames first..count-1; returns (the first frame not taken, errno or 0)."""
    start = buffer.ctypes.data
    for i in range(first, count):
        length = offsets[i + 1] - offsets[i]
        taken, error = send_part(handle, start + offsets[i], length, DONTWAIT)
        if not taken:
            return i, error
    return count, 0


@njit(cache=True, nogil=True)
def _receive_frames(
    handle: int, buffer: Bytes, offsets: Longs, count: int, largest: int, flags: int = DONTWAIT
) -> tuple[int, int, int]:
    """Append the frames that have come; returns (the new count, frames dropped as too long, errno or 0)."""
    start = buffer.ctypes.data
    end = offsets[count]
    dropped = 0
    while count + 1 < len(offsets) and end + largest <= len(buffer):
        length, error = receive_part(handle, start + end, largest, flags)
        if length < 0:
            return count, dropped, error
        if length > largest:
            dropped += 1
            continue
        end += length
        count += 1
        offsets[count] = end
    return count, dropped, 0


@njit(cache=True, nogil=True)
def _events(handle: int, value: npt.NDArray[np.int32], size: npt.NDArray[np.uint64]) -> int:
    """Return the socket's events. libzmq writes them to `value`, and their length to `size`."""
    size[0] = 4
    _getsockopt(handle, _EVENTS, value.ctypes, size.ctypes)
    return value[0]


@njit(cache=True, nogil=True)
def _sleep(
    handle: int,
    event_mask: int,
    until_ns: int,
    value: npt.NDArray[np.int32],
    size: npt.NDArray[np.uint64],
    pollfds: Longs,
    timespec: Longs,
) -> bool:
    """Sleep, unless an event in `event_mask` is there; returns whether a watched descriptor ended the sleep.

    `pollfds[0]` is the socket's own descriptor; the watched descriptors follow.
    """
    is_event_there = (_events(handle, value, size) & event_mask) != 0
    if is_event_there:
        return False
    return poll(pollfds, timespec, until_ns) == OTHERS


# Indexes of the numbers of lent calls; index 0 has their notice.
_IN = 1
"""libzmq's handle of the socket that receives."""
_OUT = 2
"""libzmq's handle of the socket that sends."""
_ERROR = 3
"""An errno, or 0."""
_DROPPED = 4
"""Counts frames that were dropped."""
_WOKEN = 5
"""1 if a watched descriptor ended a sleep."""
_TIMESPEC = 6
"""A struct timespec, two numbers."""
_DESCRIPTORS = 8
"""From here on a struct pollfd for each descriptor, a number each."""


@njit(inline="always")
def _count_after_noting(numbers: Longs, received: tuple[int, int, int]) -> int:
    """Note frames dropped and an error for Python; returns the batch's new count."""
    count, dropped, error = received
    if dropped or error:
        numbers[_DROPPED] += dropped
        numbers[_ERROR] = error
        numbers[NOTICE] = 1
    return count


@lendable(RECEIVE)
def _lent_receive(numbers: Longs, _memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    received = _receive_frames(numbers[_IN], buffer, offsets, count, largest)
    return _count_after_noting(numbers, received)


@lendable(RECEIVE)
def _lent_receive_one(numbers: Longs, _memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    """Block for one frame, as a C program does: fewer system calls than receiving, sleeping and receiving again."""
    offsets_of_one = offsets[: count + 2]  # room for one frame more, so `_receive_frames` ends after that frame
    received = _receive_frames(numbers[_IN], buffer, offsets_of_one, count, largest, _WAIT)
    return _count_after_noting(numbers, received)


@lendable(SEND)
def _lent_send(numbers: Longs, _memory: Bytes, buffer: Bytes, offsets: Longs, first: int, end: int) -> int:
    taken, error = _send_frames(numbers[_OUT], buffer, offsets, first, end)
    if error:
        numbers[_ERROR] = error
        numbers[NOTICE] = 1
    return taken


@lendable(SLEEP)
def _lent_sleep(numbers: Longs, _memory: Bytes, until_ns: int) -> None:
    """Sleep until the socket or a watched descriptor has news.

    libzmq's descriptor is edge-triggered. The preceding `receive` took all frames, so the next frame is a new edge.
    """
    reason = poll(numbers[_DESCRIPTORS:], numbers[_TIMESPEC:_DESCRIPTORS], until_ns)
    if reason:
        numbers[NOTICE] = 1
        numbers[_WOKEN] = reason == OTHERS


class Kernels(NamedTuple):
    """The kernels of a pattern, and the arguments that each takes after the common ones."""

    send: Callable[..., tuple[int, int]]
    receive: Callable[..., tuple[int, int, int]]
    extra_send_arguments: tuple[Any, ...] = ()
    extra_receive_arguments: tuple[Any, ...] = ()


class CompiledCalls(PlainCalls):
    """Calls for one frame a message. The socket belongs to one thread, as always with ZeroMQ."""

    def __init__(self, socket: Socket, watched: list[int], kernels: Kernels | None = None) -> None:
        super().__init__(socket, watched)
        self._kernels = kernels or Kernels(_send_frames, _receive_frames)
        self.handle = int(socket.underlying)
        """libzmq's handle of the socket."""
        socket.rcvtimeo = _MOMENT_MS
        # Memory for zmq_getsockopt's answer.
        self._value = np.zeros(1, np.int32)
        self._size = np.zeros(1, np.uint64)
        descriptors = [int(socket.get(zmq.FD)), *watched]
        self._pollfds = np.array([pollfd(descriptor) for descriptor in descriptors], np.int64)
        self._timespec = np.zeros(2, np.int64)
        self._warm()

    def _warm(self) -> None:
        """Compile the kernels, or load them from disk, so that nothing compiles once frames flow."""
        no_room = FrameBatch(capacity_frames=0, capacity_bytes=1, largest_frame=1)
        self.send(no_room, 0)
        self.receive(no_room)
        self.events()
        self.sleep(0, 0)

    def check(self, error: int) -> None:
        """Raise an errno other than 0 as ZMQError."""
        if error:
            raise zmq.ZMQError(error)

    def send(self, batch: FrameBatch, first: int) -> int:
        kernels = self._kernels
        taken, error = kernels.send(
            self.handle, batch.buffer, batch.offsets, first, batch.count, *kernels.extra_send_arguments
        )
        self.check(error)
        return int(taken)

    def receive(self, batch: FrameBatch) -> int:
        kernels = self._kernels
        count, dropped, error = kernels.receive(
            self.handle, batch.buffer, batch.offsets, batch.count, batch.largest_frame, *kernels.extra_receive_arguments
        )
        batch.count = int(count)
        self.check(error)
        return int(dropped)

    def events(self) -> int:
        return int(_events(self.handle, self._value, self._size))

    def sleep(self, event_mask: int, until_ns: int) -> bool:
        if not HAS_PPOLL:
            return super().sleep(event_mask, until_ns)
        return bool(_sleep(self.handle, event_mask, until_ns, self._value, self._size, self._pollfds, self._timespec))

    def lend(self, outbound: CompiledCalls, settle: Callable[[], None]) -> Lent:
        """Return the kernels that compiled code calls in place of this socket's methods.

        They send through `outbound`. `read_and_reset_notices` reads what they leave for Python.
        """
        numbers = np.concatenate([np.zeros(_DESCRIPTORS, np.int64), self._pollfds])
        numbers[_IN] = self.handle
        numbers[_OUT] = outbound.handle
        return Lent(
            receive=_lent_receive,
            send=_lent_send,
            sleep=_lent_sleep,
            numbers=numbers,
            memory=NO_MEMORY,
            settle=settle,
            receive_one=_lent_receive_one,
            pollfds=numbers[_DESCRIPTORS:],
        )


def read_and_reset_notices(lent: Lent) -> tuple[int, bool]:
    """Return what lent calls left for Python, and reset it: (frames dropped, whether a watched descriptor woke them).

    ZMQError if a call failed.
    """
    numbers = lent.numbers
    error = int(numbers[_ERROR])
    dropped = int(numbers[_DROPPED])
    woken = int(numbers[_WOKEN])
    numbers[[NOTICE, _ERROR, _DROPPED, _WOKEN]] = 0
    if error:
        raise zmq.ZMQError(error)
    return dropped, bool(woken)
