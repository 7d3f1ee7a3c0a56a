"""The shared memory of two processes: a file without a name (memfd), which ends with the last process that has it.

    0         the control words of the connector's ring, which the listener reads
    2048      the control words of the listener's ring, which the connector reads
    4096      the connector's ring
    + 2 MiB   the listener's ring

The connector makes the file, and seals its size: nobody can shrink it below a process that reads it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import NamedTuple

import numpy as np

from transports.base import TransportError
from transports.frames import Bytes

RING_BYTES = 1 << 21
"""The bytes of a ring: a power of two, and more than a frame of LONGEST_FRAME bytes takes."""
_CONTROL_BYTES = 2048
_FIRST_RING = 2 * _CONTROL_BYTES
SEGMENT_BYTES = _FIRST_RING + 2 * RING_BYTES

# Places of a ring's control words, counted from RingPlace.control; 128 bytes apart, so that no two share a cache line.
TAIL = 0
"""Bytes that the writer has written since the start."""
HEAD = 128
"""Bytes that the reader has read since the start."""
READER_SLEEPS = 256
"""1 while the reader sleeps, and wants to be woken at the next frame."""
WRITER_SLEEPS = 384
"""1 while the writer sleeps, and wants to be woken once there is room."""


class RingPlace(NamedTuple):
    """The places of a ring in the segment."""

    control: int
    data: int


CONNECTORS_RING = RingPlace(0, _FIRST_RING)
LISTENERS_RING = RingPlace(_CONTROL_BYTES, _FIRST_RING + RING_BYTES)


class NotSupported(TransportError):
    """This system has no sealed memory files."""


class NoSharedMemory(TransportError):
    """The system gives no memory or no descriptor for a segment."""


class BadSegment(Exception):
    """The file that a newcomer sent is no segment of ours, or its size is not sealed."""


def create() -> int:
    """Make a segment, and return its descriptor.

    NotSupported where the system has no memfd (Linux has); NoSharedMemory if the system refuses one.
    """
    if not hasattr(os, "memfd_create"):
        raise NotSupported("shm needs Linux's memfd_create, which this system lacks: use zeromq+ipc")
    try:
        descriptor = os.memfd_create("exchange", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError as error:
        raise _no_shared_memory(error) from error
    try:
        os.truncate(descriptor, SEGMENT_BYTES)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except OSError as error:
        os.close(descriptor)
        raise _no_shared_memory(error) from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check(descriptor: int) -> None:
    """Refuse a descriptor that is no segment, or one that its sender could shrink: BadSegment."""
    try:
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
        size = os.fstat(descriptor).st_size
    except OSError as error:
        raise BadSegment(f"it has no seals: {error.strerror}") from error
    if size != SEGMENT_BYTES or not seals & fcntl.F_SEAL_SHRINK:
        raise BadSegment(f"it has {size} bytes and the seals {seals}")


def mapped(descriptor: int) -> Bytes:
    """Return the segment's memory, which lives as long as the array. NoSharedMemory if the system does not map it."""
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
    try:
        return np.frombuffer(mmap.mmap(descriptor, SEGMENT_BYTES, flags), np.uint8)
    except OSError as error:
        raise _no_shared_memory(error) from error


def _no_shared_memory(error: OSError) -> NoSharedMemory:
    size_mib = SEGMENT_BYTES / (1 << 20)
    return NoSharedMemory(
        f"shm needs {size_mib:.0f} MiB of shared memory for each peer, and the system refuses it ({error.strerror}): "
        "free memory or raise its limit (ulimit -v, ulimit -n, the container's), or use zeromq+ipc"
    )
