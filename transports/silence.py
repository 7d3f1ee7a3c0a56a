"""A peer is called silent only after a last look: frames may have come while this process itself was stalled."""

from __future__ import annotations

import time
from collections.abc import Callable

from transports.base import Link

LAST_LOOK_NS = 200_000_000
"""The longest last look. A library's own thread, which was stalled too, needs a moment to bring what came."""


def is_silent(link: Link, take: Callable[[], int]) -> bool:
    """Wait briefly for a frame, then call `take`, which receives once; True if it received nothing."""
    link.wait(time.monotonic_ns() + LAST_LOOK_NS)
    return not take()
