"""Network namespaces as descriptors: a namespace is there as long as someone has it open, or is in it."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

_NEWNET = 0x40000000
"""CLONE_NEWNET of linux/sched.h; os.unshare and os.setns are not in Python 3.11."""
_libc = ctypes.CDLL(None, use_errno=True)


def new_namespace() -> int:
    """A descriptor of a namespace with nothing in it. The caller stays where it is."""
    with _here():
        _checked(_libc.unshare(_NEWNET))
        return os.open("/proc/self/ns/net", os.O_RDONLY)


@contextlib.contextmanager
def inside(namespace: int) -> Iterator[None]:
    """Sockets that are opened here, and processes that are started here, are in that namespace."""
    with _here():
        _checked(_libc.setns(namespace, _NEWNET))
        yield


@contextlib.contextmanager
def _here() -> Iterator[None]:
    """Whatever happens inside, back to the namespace of now."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        yield
        _checked(_libc.setns(here, _NEWNET))
    finally:
        os.close(here)


def _checked(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
