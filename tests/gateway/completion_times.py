"""Helpers for tests of completion times: foreign frames, due times, and the buckets that times must fill."""

from __future__ import annotations

from collections import Counter

import numpy as np

from exchange.measurements import LogBuckets
from exchange.messages import (
    Cancel,
    Confirmation,
    End,
    Hello,
    Order,
    Statistics,
    Trade,
    encode,
)
from gateway.due_times import NO_DUE_TIMES

FOREIGN = [
    b"",
    b"\x00",  # no type byte of a message
    b"\xff\xff",
    b"\x03\x01",  # a truncated confirmation
    encode(Order(1, 1, 500, 1)),
    encode(Cancel(1)),
    encode(End(1, 2, 3, 4)),
    encode(Hello(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
    encode(Statistics(b"{}")),
    encode(Confirmation(1)) + b"\x02",  # the second message is truncated
    encode(Trade(1, 2, 3)) + encode(Order(1, 1, 500, 1)),
    encode(Confirmation(1)) + b"\x00",
]
"""Frames that do not hold answers alone."""

START_NS = 1_000_000


def due_times(first_id: int, count: int, period_ns: float) -> np.ndarray:
    """Return due times from START_NS on; NO_DUE_TIMES if the period is 0, which stands for no schedule."""
    if not period_ns:
        return NO_DUE_TIMES
    earlier = np.arange(first_id - 1, first_id - 1 + count)
    return START_NS + (earlier * period_ns).astype(np.int64)


def assert_holds(buckets: LogBuckets, times_ns: list[int]) -> None:
    """Assert that the buckets hold these times.

    The expected bucket is computed in exact integers: floor(128 log2(v)) is the length of v^128 in bits, less one.
    """
    expected = Counter((max(time_ns, 1) ** 128).bit_length() - 1 for time_ns in times_ns)
    counts = {int(bucket): int(buckets.counts[bucket]) for bucket in np.flatnonzero(buckets.counts)}
    assert counts == expected
    assert buckets.sum_ns == sum(times_ns)
    assert buckets.min_ns == min(times_ns)
    assert buckets.max_ns == max(times_ns)
