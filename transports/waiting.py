"""Sleep on descriptors with the resolution of the clock: ppoll in ns if the OS has it, else select in us."""

from __future__ import annotations

import ctypes
import select
import time

READABLE = select.POLLIN
WRITABLE = select.POLLOUT
LONGEST_SLEEP_NS = 1_000_000_000
"""The longest sleep. A signal that arrived just before a sleep is handled after it, so within this time."""


class _PollFd(ctypes.Structure):
    _fields_ = (("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short))


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("ns", ctypes.c_long))


_PPOLL = getattr(ctypes.CDLL(None), "ppoll", None)
HAS_PPOLL = _PPOLL is not None


class Sleeper:
    """Sleeps until one of a few (descriptor, events) is ready. Make one for many sleeps: making it takes long."""

    def __init__(self, fds: list[tuple[int, int]]) -> None:
        self._descriptors = fds
        self._fds = (_PollFd * max(len(fds), 1))(*(_PollFd(fd, events) for fd, events in fds))
        self._timeout = _TimeSpec()
        self._arguments = self._fds, len(fds), ctypes.byref(self._timeout), None

    def sleep(self, until_ns: int) -> bool:
        """Sleep until a descriptor is ready, a signal, or `until_ns` of the monotonic clock. True if one is ready."""
        left_ns = min(max(until_ns - time.monotonic_ns(), 0), LONGEST_SLEEP_NS)
        if _PPOLL is None:
            return _select(self._descriptors, left_ns)
        self._timeout.seconds, self._timeout.ns = divmod(left_ns, 1_000_000_000)
        ready: int = _PPOLL(*self._arguments)
        return ready > 0

    def may_have_woken(self, index: int) -> bool:
        """True if the descriptor at `index` was ready when the sleep ended. Always True without ppoll."""
        if _PPOLL is None:
            return True
        return bool(self._fds[index].revents)


def _select(fds: list[tuple[int, int]], left_ns: int) -> bool:
    readable = [fd for fd, events in fds if events & READABLE]
    writable = [fd for fd, events in fds if events & WRITABLE]
    return any(select.select(readable, writable, [], left_ns / 1e9))
