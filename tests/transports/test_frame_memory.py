"""The memory of a batch that has room for long frames."""

from __future__ import annotations

import ctypes
import math
import mmap
import sys

import numpy as np
import pytest

from transports.frames import LONGEST_FRAME, Bytes, FrameBatch

ROOM = 8 << 20


def resident_pages(buffer: Bytes) -> int:
    """Return how many pages of the buffer take memory."""
    start = buffer.ctypes.data & -mmap.PAGESIZE
    size = buffer.ctypes.data + len(buffer) - start
    pages = (ctypes.c_ubyte * math.ceil(size / mmap.PAGESIZE))()
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(start), ctypes.c_size_t(size), pages) == 0
    return sum(page & 1 for page in pages)


@pytest.mark.skipif(sys.platform != "linux", reason="mincore differs between systems")
def test_unused_room_for_long_frames_takes_no_memory() -> None:
    for _ in range(2):
        np.ones(2 * ROOM, np.uint8)  # malloc may keep this memory and use it for the batch
    batch = FrameBatch(1, ROOM, LONGEST_FRAME)
    batch.append(b"short")
    assert list(batch) == [b"short"]
    assert resident_pages(batch.buffer) == 1
    batch.buffer[:] = 1
    assert resident_pages(batch.buffer) == ROOM // mmap.PAGESIZE
