"""Sleeping on descriptors with the resolution of the clock: ppoll in ns where the OS has it, select in us elsewhere."""

from __future__ import annotations

import ctypes
import select
import time

READABLE, WRITABLE = select.POLLIN, select.POLLOUT
LONGEST_SLEEP_NS = 250_000_000
"""A signal that arrives just before the sleep is seen after this at the latest."""


class _PollFd(ctypes.Structure):
    _fields_ = (("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short))


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("ns", ctypes.c_long))


class Sleeper:
    """Waits on a few descriptors; reused, so that a sleep allocates nothing."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        self._ppoll = getattr(libc, "ppoll", None)
        self._fds = (_PollFd * 16)()
        self._timeout = _TimeSpec()

    def sleep(self, fds: list[tuple[int, int]], until_ns: int) -> bool:
        """Until one of (descriptor, events) is ready, a signal, or `until_ns`; whether one is ready."""
        left_ns = min(max(until_ns - time.monotonic_ns(), 0), LONGEST_SLEEP_NS)
        if self._ppoll is None or len(fds) > len(self._fds):
            return _select(fds, left_ns)
        for slot, (fd, events) in zip(self._fds, fds, strict=False):
            slot.fd, slot.events = fd, events
        self._timeout.seconds, self._timeout.ns = divmod(left_ns, 1_000_000_000)
        ready: int = self._ppoll(self._fds, len(fds), ctypes.byref(self._timeout), None)
        return ready > 0


def _select(fds: list[tuple[int, int]], left_ns: int) -> bool:
    readable = [fd for fd, events in fds if events & READABLE]
    writable = [fd for fd, events in fds if events & WRITABLE]
    return any(select.select(readable, writable, [], left_ns / 1e9))
