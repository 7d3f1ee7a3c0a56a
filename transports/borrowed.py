"""Another process's socket, for a moment: pidfd_getfd of Linux 5.6, where we may trace that process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
from collections.abc import Iterator

PIDFD_GETFD = 438
"""The call's number, the same on every architecture that came after 2011, and on x86."""


@contextlib.contextmanager
def borrowed(pid: int, descriptor: int) -> Iterator[socket.socket]:
    """A descriptor of ours to the same open socket, closed in the end. OSError where we may not, or it is gone."""
    if not hasattr(os, "pidfd_open"):
        raise OSError("this system lends no descriptors: pidfd_getfd is Linux's")
    pidfd = os.pidfd_open(pid)
    try:
        ours = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, pidfd, descriptor, 0)
    finally:
        os.close(pidfd)
    if ours < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    with socket.socket(fileno=ours) as sock:
        yield sock
