"""FrameBatch: the unit that crosses the seam. One contiguous buffer, the offset of each frame, a count.

Frame i is `buffer[offsets[i]:offsets[i + 1]]`; `offsets[0]` is 0. Preallocated, reused, and read and
written in place by compiled code, which takes the arrays and hands back the new count.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]

LARGEST_FRAME = 1 << 17
"""That of a batch, unless it is made for longer ones."""
LONGEST_FRAME = 1 << 20
"""What every transport carries."""


class FrameBatch:
    """Frames one after the other.

    A link receives while there is room for the largest frame it may meet, so `capacity_bytes` is at least
    `largest_frame`; a frame longer than that is junk.
    """

    __slots__ = ("buffer", "count", "largest_frame", "offsets")

    def __init__(
        self,
        capacity_frames: int = 4096,
        capacity_bytes: int = 2 * LARGEST_FRAME,
        largest_frame: int = LARGEST_FRAME,
    ) -> None:
        if capacity_bytes < largest_frame:
            raise ValueError(f"capacity_bytes {capacity_bytes} holds no frame of {largest_frame} bytes")
        self.buffer: npt.NDArray[np.uint8] = np.zeros(capacity_bytes, np.uint8)
        self.offsets: npt.NDArray[np.int64] = np.zeros(capacity_frames + 1, np.int64)
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

    def span(self, first: int, end: int) -> npt.NDArray[np.uint8]:
        """The bytes of frames first..end-1, without a copy."""
        return self.buffer[self.offsets[first] : self.offsets[end]]

    def clear(self) -> None:
        self.count = 0

    def append(self, frame: bytes) -> None:
        """Add one frame, growing the arrays where they are full."""
        start, end = self.used_bytes, self.used_bytes + len(frame)
        if end > len(self.buffer):
            self.buffer = np.resize(self.buffer, max(end, 2 * len(self.buffer)))
        if self.count == self.capacity_frames:
            self.offsets = np.resize(self.offsets, 2 * self.capacity_frames + 1)
        self.buffer[start:end] = np.frombuffer(frame, np.uint8)
        self.count += 1
        self.offsets[self.count] = end

    @classmethod
    def of(cls, *frames: bytes) -> FrameBatch:
        """A batch that holds these frames."""
        batch = cls(max(len(frames), 1), max(sum(map(len, frames)), LARGEST_FRAME))
        for frame in frames:
            batch.append(frame)
        return batch
