"""FrameBatch: the unit that crosses the seam. One contiguous buffer, the offset of each frame, a count.

Frame i is `buffer[offsets[i]:offsets[i + 1]]`; `offsets[0]` is 0. A batch is preallocated and reused. Compiled code
reads and writes its arrays in place, and returns the new count.

ReturnAddresses holds the senders of the requests that a link still has to answer.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

LARGEST_FRAME = 1 << 17
"""The largest frame of a batch, in bytes, unless it is made for longer ones."""
LONGEST_FRAME = 1 << 20
"""The longest frame, in bytes, that every transport carries."""
MOST_UNANSWERED = 8_192
"""The most unanswered requests of a link that answers: at this number it receives no more."""
ADDRESS_BYTES = 600
NOBODY = -1
"""The length of the address of a dropped request, which gets no answer."""

# Indexes of ReturnAddresses.counts.
ANSWERED = 0
"""The number of requests that were answered so far."""
RECEIVED = 1
"""The number of requests that were received so far."""


def untouched(size: int) -> Bytes:
    """Return `size` zeros. More than LARGEST_FRAME of them take memory page by page, once they are written to.

    np.zeros may take all of the memory at once: numpy asks for huge pages, and malloc clears memory that it had before.
    """
    if size <= LARGEST_FRAME:
        return np.zeros(size, np.uint8)
    return np.frombuffer(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)


class FrameBatch:
    """Frames one after the other.

    A link receives while there is room for a frame of `largest_frame` bytes, so `capacity_bytes` is at least as much.
    A longer frame is junk.
    """

    __slots__ = ("buffer", "count", "largest_frame", "offsets")

    def __init__(
        self, capacity_frames: int = 4096, capacity_bytes: int = 2 * LARGEST_FRAME, largest_frame: int = LARGEST_FRAME
    ) -> None:
        if capacity_bytes < largest_frame:
            raise ValueError(f"capacity_bytes {capacity_bytes} holds no frame of {largest_frame} bytes")
        self.buffer: Bytes = untouched(capacity_bytes)
        self.offsets: Longs = np.zeros(capacity_frames + 1, np.int64)
        self.count = 0
        self.largest_frame = largest_frame

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> bytes:
        if not 0 <= index < self.count:
            raise IndexError(f"frame {index} of {self.count}")
        return self.span(index, index + 1).tobytes()

    def __iter__(self) -> Iterator[bytes]:
        return (self[index] for index in range(self.count))

    @property
    def capacity_frames(self) -> int:
        return len(self.offsets) - 1

    @property
    def used_bytes(self) -> int:
        return int(self.offsets[self.count])

    def span(self, first: int, end: int) -> Bytes:
        """The bytes of frames first..end-1, without a copy."""
        return self.buffer[self.offsets[first] : self.offsets[end]]

    def clear(self) -> None:
        self.count = 0

    def has_room(self, size: int) -> bool:
        """True if one more frame, of `size` bytes, fits into the arrays as they are."""
        return self.count < self.capacity_frames and self.used_bytes + size <= len(self.buffer)

    def append(self, frame: bytes) -> None:
        """Add one frame. Full arrays grow."""
        start = self.used_bytes
        end = self.used_bytes + len(frame)
        if end > len(self.buffer):
            self.buffer = np.resize(self.buffer, max(end, 2 * len(self.buffer)))
        if self.count == self.capacity_frames:
            self.offsets = np.resize(self.offsets, 2 * self.capacity_frames + 1)
        self.buffer[start:end] = np.frombuffer(frame, np.uint8)
        self.count += 1
        self.offsets[self.count] = end

    def drop(self, frames: int) -> None:
        """Remove the first `frames` frames; the others move to the front."""
        rest = self.span(frames, self.count).copy()
        self.buffer[: len(rest)] = rest
        self.offsets[: self.count - frames + 1] = self.offsets[frames : self.count + 1] - self.offsets[frames]
        self.count -= frames

    @classmethod
    def of(cls, *frames: bytes) -> FrameBatch:
        """A batch that holds these frames."""
        batch = cls(max(len(frames), 1), max(sum(map(len, frames)), LARGEST_FRAME))
        for frame in frames:
            batch.append(frame)
        return batch


WITHOUT_ROOM = FrameBatch(capacity_frames=0, capacity_bytes=1, largest_frame=1)
"""A batch that no frame fits into, for a look at what has come."""


class ReturnAddresses:
    """The address of each request's sender, kept until the answer leaves, in the order of the requests.

    A link that answers sends one frame for each frame that it has received, in that order, so no frame holds an
    address. The arrays are a ring that kernels write and read: request n has place n % capacity. A ring with a
    `capacity` of 0 keeps nothing.
    """

    def __init__(self, capacity: int = MOST_UNANSWERED) -> None:
        self.addresses: Bytes = np.zeros((capacity, ADDRESS_BYTES), np.uint8)
        self.lengths: Longs = np.zeros(capacity, np.int64)
        self.counts: Longs = np.zeros(2, np.int64)

    def __len__(self) -> int:
        """The capacity."""
        return len(self.lengths)

    def forget(self, newest: int) -> None:
        """Drop the address of a request, given the number of requests received after it."""
        self.lengths[(int(self.counts[RECEIVED]) - 1 - newest) % len(self)] = NOBODY

    def take(self) -> bytes:
        """Remove and return the oldest address."""
        place = int(self.counts[ANSWERED]) % len(self)
        self.counts[ANSWERED] += 1
        return self.addresses[place, : max(int(self.lengths[place]), 0)].tobytes()
