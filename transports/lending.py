"""Compiled calls that a link lends to a component, so that a turn of the component's loop is one compiled call.

They have the same types over every transport, so that a turn is compiled once and kept on disk:

    receive(numbers, memory, buffer, offsets, count, largest)   the batch's new count, as Link.receive
    send(numbers, memory, buffer, offsets, first, end)          the first frame not taken, as Link.send
    sleep(numbers, memory, until_ns)                            until a frame has come, a signal, or `until_ns`

`numbers` and `memory` belong to the transport. A call that leaves something for Python to do sets numbers[NOTICE];
the component then comes back to Python and calls `Lent.settle`. Two rules keep the calls few. A component sleeps only
right after a `receive` that found no more frames, so `sleep` does not look for frames again. And after a `send` it
receives before it sleeps, since sending may take in the news that a frame has come.
"""

from __future__ import annotations

import ctypes
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
from numba import cfunc, njit, types

from transports import waiting
from transports.frames import Bytes, Longs
from transports.waiting import LONGEST_SLEEP_NS, READABLE

if TYPE_CHECKING:
    from transports.base import Link

NOTICE = 0
"""The index in `numbers` of the notice: not 0 if Python must settle something at the link."""

_NUMBERS = types.int64[::1]
_BYTES = types.uint8[::1]
_LONG = types.int64
RECEIVE = types.int64(_NUMBERS, _BYTES, _BYTES, _NUMBERS, _LONG, _LONG)
SEND = types.int64(_NUMBERS, _BYTES, _BYTES, _NUMBERS, _LONG, _LONG)
SLEEP = types.void(_NUMBERS, _BYTES, _LONG)

# Reasons for the end of a sleep; 0 if the first descriptor is ready, or the time is over.
SIGNAL = 1
"""A signal came."""
OTHERS = 2
"""A descriptor after the first one is ready, or the first one has an error."""

_ppoll = types.ExternalFunction("ppoll", types.int32(types.voidptr, types.uintp, types.voidptr, types.voidptr))
_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))
_CLOCK_MONOTONIC = int(time.CLOCK_MONOTONIC)

send_bytes = types.ExternalFunction("send", types.intp(types.int32, types.voidptr, types.uintp, types.int32))
receive_bytes = types.ExternalFunction("recv", types.intp(types.int32, types.voidptr, types.uintp, types.int32))
move_bytes = types.ExternalFunction("memmove", types.voidptr(types.voidptr, types.voidptr, types.uintp))
"""memmove(to, from, bytes), several times as fast as a slice that is assigned to a slice."""
AT_ONCE = int(getattr(socket, "MSG_DONTWAIT", 0)) | int(getattr(socket, "MSG_NOSIGNAL", 0))
"""Flags of `send_bytes` and `receive_bytes`: return at once, and send no signal if the peer has left."""
SOCKETS_ARE_COMPILED = hasattr(ctypes.CDLL(None), "send") and hasattr(socket, "MSG_DONTWAIT")


@njit(inline="always")
def monotonic_ns(timespec: Longs) -> int:
    """The monotonic clock, for compiled code; `timespec` is room for two numbers."""
    _clock_gettime(_CLOCK_MONOTONIC, timespec.ctypes)
    return timespec[0] * 1_000_000_000 + timespec[1]


@njit(inline="always")
def poll(pollfds: Longs, timespec: Longs, until_ns: int) -> int:
    """Sleep until a descriptor is ready, a signal, or `until_ns`; returns 0, SIGNAL or OTHERS.

    `pollfds` holds a struct pollfd in each number; see `pollfd`.
    """
    left_ns = min(max(until_ns - monotonic_ns(timespec), 0), LONGEST_SLEEP_NS)
    timespec[0] = left_ns // 1_000_000_000
    timespec[1] = left_ns % 1_000_000_000
    ready = _ppoll(pollfds.ctypes, len(pollfds), timespec.ctypes, 0)
    if ready < 0:
        return SIGNAL
    reason = 0
    if ready > 0:
        for i in range(len(pollfds)):
            events = pollfds[i] >> 48  # the field `revents`, the last two bytes
            if events and (i > 0 or events != READABLE):
                reason = OTHERS
    return reason


def pollfd(descriptor: int) -> int:
    """The struct pollfd that waits until the descriptor is readable, as one number."""
    return int(np.array([descriptor, READABLE], np.int32).view(np.int64)[0])


class Lendable(types.WrapperAddressProtocol):  # type: ignore[misc]
    """A compiled function of one of the three signatures, as compiled code takes it for an argument."""

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self._signature = signature
        self.plain = function
        """The function for Python."""
        self._compiled = cfunc(signature, cache=True)(function)

    def __wrapper_address__(self) -> int:
        return int(self._compiled.address)

    def signature(self) -> Any:
        return self._signature


def lendable(signature: Any, *frozen: ModuleType) -> Callable[[Callable[..., Any]], Lendable]:
    """A decorator that compiles a function, or loads it from disk, with this signature.

    `frozen`: the modules whose kernels or constants the function has. numba itself notices edits of the function's own
    file only, so the name of the compiled file has a checksum of this file and the frozen modules: an edit gives a new
    name.
    """
    checksum = crc32(Path(__file__).read_bytes())
    for module in (waiting, *frozen):
        checksum = crc32(Path(str(module.__file__)).read_bytes(), checksum)

    def decorate(function: Callable[..., Any]) -> Lendable:
        function.__qualname__ += f"_{checksum:08x}"
        return Lendable(function, signature)

    return decorate


class Lent(NamedTuple):
    """The calls of one link."""

    receive: Lendable
    send: Lendable
    sleep: Lendable
    numbers: Longs
    memory: Bytes
    settle: Callable[[], None]
    """Does in Python the work that the compiled calls left; raises the errors of the link's receive, send and wait."""
    receive_one: Lendable | None = None
    """Waits a moment for one frame and receives it; None if `receive` and `sleep` are as fast over this transport."""
    pollfds: Longs | None = None
    """The descriptors on which `sleep` sleeps, each as `pollfd` has it, for a thread that sleeps on several links.

    When one of them is ready, `sleep` until now notes what Python has to do. None if a sleep needs more than these.
    """


def lent_by(link: Link) -> Lent | None:
    """The compiled calls of a link, to use until they set the notice; None if Python has to serve the link now.

    A link that lends its calls has a method `lend`; others lend nothing.
    """
    lend: Callable[[], Lent | None] | None = getattr(link, "lend", None)
    if lend is None:
        return None
    return lend()


NO_MEMORY: Bytes = np.zeros(1, np.uint8)
"""The memory of a transport that needs none."""


@lendable(RECEIVE)
def _receive_nothing(numbers: Longs, _memory: Bytes, _buffer: Bytes, _offsets: Longs, count: int, _largest: int) -> int:
    numbers[NOTICE] = 1
    return count


@lendable(SEND)
def _send_nothing(_numbers: Longs, _memory: Bytes, _buffer: Bytes, _offsets: Longs, first: int, _end: int) -> int:
    return first


@lendable(SLEEP)
def _sleep_never(_numbers: Longs, _memory: Bytes, _until_ns: int) -> None:
    pass


def idle_calls() -> Lent:
    """Calls that move nothing and ask for Python at once: to load a turn's kernel before the clock runs."""
    return Lent(_receive_nothing, _send_nothing, _sleep_never, np.zeros(1, np.int64), NO_MEMORY, lambda: None)
