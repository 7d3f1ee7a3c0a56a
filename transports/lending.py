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

from transports.frames import Bytes, Longs
from transports.waiting import LONGEST_SLEEP_NS, READABLE

if TYPE_CHECKING:
    from transports.base import Link

NOTICE = 0
"""The place in `numbers` that is not 0 if Python must look at the link."""

_NUMBERS = types.int64[::1]
_BYTES = types.uint8[::1]
_LONG = types.int64
RECEIVE = types.int64(_NUMBERS, _BYTES, _BYTES, _NUMBERS, _LONG, _LONG)
SEND = types.int64(_NUMBERS, _BYTES, _BYTES, _NUMBERS, _LONG, _LONG)
SLEEP = types.void(_NUMBERS, _BYTES, _LONG)

# Reasons for the end of a sleep.
SIGNAL = 1
OTHERS = 2
"""News of a descriptor after the first, or trouble with the first."""

_ppoll = types.ExternalFunction("ppoll", types.int32(types.voidptr, types.uintp, types.voidptr, types.voidptr))
_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))
_CLOCK_MONOTONIC = int(time.CLOCK_MONOTONIC)

send_bytes = types.ExternalFunction("send", types.intp(types.int32, types.voidptr, types.uintp, types.int32))
receive_bytes = types.ExternalFunction("recv", types.intp(types.int32, types.voidptr, types.uintp, types.int32))
move_bytes = types.ExternalFunction("memmove", types.voidptr(types.voidptr, types.voidptr, types.uintp))
"""memmove(to, from, bytes), several times as fast as a slice that is assigned to a slice."""
AT_ONCE = int(getattr(socket, "MSG_DONTWAIT", 0)) | int(getattr(socket, "MSG_NOSIGNAL", 0))
"""The flags with which both return at once, and without a signal where the peer has left."""
SOCKETS_ARE_COMPILED = hasattr(ctypes.CDLL(None), "send") and hasattr(socket, "MSG_DONTWAIT")


@njit(inline="always")
def monotonic_ns(timespec: Longs) -> int:
    """The monotonic clock, for compiled code; `timespec` is room for two numbers."""
    _clock_gettime(_CLOCK_MONOTONIC, timespec.ctypes)
    return timespec[0] * 1_000_000_000 + timespec[1]


@njit(inline="always")
def poll(pollfds: Longs, timespec: Longs, until_ns: int) -> int:
    """Sleep until a descriptor is ready, a signal, or `until_ns`; SIGNAL, or OTHERS if it was not the first one's news.

    `pollfds` holds a struct pollfd in each number; see `pollfd`.
    """
    left_ns = min(max(until_ns - monotonic_ns(timespec), 0), LONGEST_SLEEP_NS)
    timespec[0] = left_ns // 1_000_000_000
    timespec[1] = left_ns % 1_000_000_000
    ready = _ppoll(pollfds.ctypes, len(pollfds), timespec.ctypes, 0)
    if ready < 0:
        return SIGNAL
    news = 0
    if ready > 0:
        for i in range(len(pollfds)):
            came = pollfds[i] >> 48
            if came and (i > 0 or came != READABLE):
                news = OTHERS
    return news


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

    numba notices an edit of the function's own file only; an edit of this one, or of a `frozen` module, whose kernels
    the function calls, gives the file on disk another name.
    """
    sources = b"".join(Path(file).read_bytes() for file in (__file__, *(str(module.__file__) for module in frozen)))

    def decorate(function: Callable[..., Any]) -> Lendable:
        function.__qualname__ += f"_{crc32(sources):08x}"
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
    """Does in Python what the compiled calls left: raises what `receive`, `send` or `wait` of the link would raise."""
    receive_one: Lendable | None = None
    """Receives one frame, and waits a moment for it; None if this transport is as fast by `receive` and `sleep`."""


def lent_by(link: Link) -> Lent | None:
    """The compiled calls of a link, to use until they ask for Python; None if it has other things to do now.

    Links of `zeromq`, `tcp` and `amqp` have a `lend`; others have none.
    """
    lend: Callable[[], Lent | None] | None = getattr(link, "lend", None)
    return lend() if lend else None


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
