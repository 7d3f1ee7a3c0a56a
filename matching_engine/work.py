"""Work on orders: an engine with `--work` computes for a given time on each order, as a slow consumer does."""

from __future__ import annotations

import time

import numpy as np
from numba import types

from exchange.compiled import cached_kernel
from transports import lending
from transports.lending import monotonic_ns


@cached_kernel(lending, signature=types.int64(types.int64))
def _compute_until(until_ns: int) -> int:
    """Keep the processor busy until this time of the monotonic clock. Returns the time at the end."""
    timespec = np.empty(2, np.int64)
    now_ns = monotonic_ns(timespec)
    while now_ns < until_ns:
        now_ns = monotonic_ns(timespec)
    return now_ns


def work_for(duration_ns: int) -> None:
    """Compute for this time."""
    _compute_until(time.monotonic_ns() + duration_ns)
