"""The log buckets of completion times, and the clocks of these times.

Bucket i holds values v with 2^(i/128) <= v < 2^((i+1)/128), in ns: 128 buckets an octave, so half a bucket,
0.27 %, is the worst error of a percentile. Count, sum, min and max stay exact. Buckets merge by adding counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange.percentiles import PERCENTS

NS_PER_S = 1_000_000_000
BUCKETS_PER_OCTAVE = 128
OCTAVES = 45  # 2^45 ns is 9.8 hours; longer values go into the last bucket
BUCKETS = BUCKETS_PER_OCTAVE * OCTAVES


CLOCKS = ("handed_over", "due", "lag")
"""Completion from hand-over, completion from due time, and the gateway's own lag, which is their difference."""


def bucket_of(values_ns: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the bucket of each value; 0 and 1 ns share bucket 0."""
    values = np.maximum(np.asarray(values_ns, np.float64), 1.0)
    buckets = (np.log2(values) * BUCKETS_PER_OCTAVE).astype(np.int64)
    return np.minimum(buckets, BUCKETS - 1)


def bucket_middle_ns(index: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the geometric middle of a bucket, in ns: the value that stands for all in it."""
    middle: npt.NDArray[np.float64] = np.exp2((np.asarray(index, np.float64) + 0.5) / BUCKETS_PER_OCTAVE)
    return middle


def rank_of(percent: npt.ArrayLike, count: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the percentile's place among this many sorted values, from 1.

    The product is rounded, since in binary 99.9 % of 41,000 is above 40,959.
    """
    rank = np.round(np.multiply(count, percent) / 100, 6)
    return np.maximum(np.ceil(rank), 1).astype(np.int64)


@dataclass
class LogBuckets:
    """A histogram of times in ns; `counts` has shape (BUCKETS,)."""

    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))
    sum_ns: int = 0
    min_ns: int = 0
    max_ns: int = 0

    @property
    def count(self) -> int:
        return int(self.counts.sum())

    @property
    def mean_ns(self) -> float:
        return self.sum_ns / self.count if self.count else float("nan")

    def percentile_ns(self, percent: float) -> float:
        """Return numpy's `inverted_cdf` of the bucket middles, within the exact min and max; nan without a value."""
        return float(self.percentiles_ns(percent)) if self.count else float("nan")

    def percentiles_ns(self, percents: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return several percentiles at once, as `percentile_ns` returns one. There must be a value."""
        values_up_to_bucket = np.cumsum(self.counts)
        index = np.searchsorted(values_up_to_bucket, rank_of(percents, self.count))
        return np.clip(bucket_middle_ns(index), self.min_ns, self.max_ns)

    def merge(self, other: LogBuckets) -> None:
        """Add another histogram to this one."""
        if not other.count:
            return
        if self.count:
            self.min_ns = min(self.min_ns, other.min_ns)
        else:
            self.min_ns = other.min_ns
        self.max_ns = max(self.max_ns, other.max_ns)
        self.counts += other.counts
        self.sum_ns += other.sum_ns

    def figures_us(self) -> dict[str, float]:
        """Return the figures of run.json, in microseconds; empty if nothing was measured."""
        if not self.count:
            return {}
        figures = {name: self.percentile_ns(percent) / 1e3 for name, percent in PERCENTS.items()}
        return {"count": self.count, "mean": self.mean_ns / 1e3, **figures, "max": self.max_ns / 1e3}

    def sparse(self) -> dict[str, Any]:
        """Return the payload of a statistics record: only the buckets that are not empty."""
        index = np.flatnonzero(self.counts)
        return {
            "count": self.count,
            "sum_ns": self.sum_ns,
            "min_ns": self.min_ns,
            "max_ns": self.max_ns,
            "bucket": index,
            "bucket_count": self.counts[index],
        }

    def as_lists(self) -> dict[str, Any]:
        """Return the payload of `sparse` with lists in place of arrays."""
        payload = self.sparse()
        return {**payload, "bucket": payload["bucket"].tolist(), "bucket_count": payload["bucket_count"].tolist()}

    @classmethod
    def of(cls, times_ns: npt.NDArray[np.int64]) -> LogBuckets:
        """Return the histogram of single times, shape (any,)."""
        if not len(times_ns):
            return cls()
        counts = np.bincount(bucket_of(times_ns), minlength=BUCKETS)
        return cls(counts, int(times_ns.sum()), int(times_ns.min()), int(times_ns.max()))

    @classmethod
    def together(cls, several: Iterable[LogBuckets]) -> LogBuckets:
        """Return one histogram of all of them."""
        total = cls()
        for buckets in several:
            total.merge(buckets)
        return total

    @classmethod
    def from_sparse(cls, payload: dict[str, Any]) -> LogBuckets:
        """Return the histogram of a payload that `sparse` made; its buckets may be lists or arrays."""
        buckets = cls(sum_ns=int(payload["sum_ns"]), min_ns=int(payload["min_ns"]), max_ns=int(payload["max_ns"]))
        buckets.counts[np.asarray(payload["bucket"], np.int64)] = payload["bucket_count"]
        return buckets
