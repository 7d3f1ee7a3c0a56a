"""The log bucket of one time, for compiled code: gateways and benchmarks count with it.

`bucket_of` of exchange.measurements gives the same for an array, in numpy. It stays beside this, since pages, records
and Spark's tasks have arrays, and start without numba.
"""

from __future__ import annotations

import math

from exchange.compiled import inlined
from exchange.measurements import BUCKETS, BUCKETS_PER_OCTAVE


@inlined
def log_bucket(value_ns: int) -> int:
    """Return the bucket of a time; 0 and 1 ns share bucket 0.

    A `cached_kernel` that calls it names this module and exchange.measurements, whose constants it has frozen.
    """
    return min(int(math.log2(max(value_ns, 1)) * BUCKETS_PER_OCTAVE), BUCKETS - 1)
