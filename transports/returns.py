"""Where answers go: of every request the address of who asked, kept until its answer leaves, first come first served.

A link that answers is to send one frame for every frame it has received, in that order; then no address is in a frame.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MOST_UNANSWERED = 8_192
"""Requests received and not answered; more are not received."""
ADDRESS_BYTES = 600
NOBODY = -1
"""The length of an address whose request was dropped: it has no answer."""
ANSWERED, RECEIVED = 0, 1
"""Of `ends`: how many there were so far."""


class Returns:
    """A ring that kernels write and read; without `capacity` nothing is kept."""

    def __init__(self, capacity: int = MOST_UNANSWERED) -> None:
        self.addresses: npt.NDArray[np.uint8] = np.zeros((capacity, ADDRESS_BYTES), np.uint8)
        self.lengths: npt.NDArray[np.int64] = np.zeros(capacity, np.int64)
        self.ends: npt.NDArray[np.int64] = np.zeros(2, np.int64)

    @property
    def is_kept(self) -> bool:
        return len(self.lengths) > 0

    def forget(self, newest: int) -> None:
        """Drop the address of the newest request but so many."""
        self.lengths[(int(self.ends[RECEIVED]) - 1 - newest) % len(self.lengths)] = NOBODY

    def take(self) -> bytes:
        """The oldest."""
        place = int(self.ends[ANSWERED]) % len(self.lengths)
        self.ends[ANSWERED] += 1
        return self.addresses[place, : max(int(self.lengths[place]), 0)].tobytes()
