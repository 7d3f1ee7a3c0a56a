"""The log bucket of one time, for compiled code: gateways and benchmarks count with it.

`bucket_of` of exchange.measurements does the same for a numpy array. There are two versions because pages, records and
Spark's tasks work on arrays and must not import numba.
"""

from __future__ import annotations

import math

from exchange.compiled import inlined
from exchange.measurements import BUCKETS, BUCKETS_PER_OCTAVE


@inlined
def log_bucket(value_ns: int) -> int:
    """Return the bucket of a time; 0 and 1 ns share bucket 0.

    List this module and exchange.measurements in the `cached_kernel(...)` of every caller: the kernel compiles their
    constants in.
    """
    return min(int(math.log2(max(value_ns, 1)) * BUCKETS_PER_OCTAVE), BUCKETS - 1)
