"""Statistics records of a run's sources, second by second."""

from __future__ import annotations

from typing import Any

import numpy as np

from exchange.measurements import BUCKETS, LogBuckets, bucket_of
from exchange_simulation.reports.live.figures import Figures

Record = dict[str, Any]
START_NS = 7_000_000_000


def spool_record(source: str, kind: str, second: int, after_s: float | None = None, **payload: Any) -> Record:
    """Return a record that was sent `after_s` after the clock's start; by default, at the end of its second."""
    if after_s is None:
        after_s = second + 1
    at_ns = START_NS + int(after_s * 1e9)
    head = {"schema": 1, "run": "00", "source": source, "kind": kind, "wall_ns": 1, "monotonic_ns": at_ns}
    return {**head, "payload": {"second": second, **payload}}


def traffic(second: int, sent: int, after_s: float | None = None, source: str = "gateway") -> Record:
    counts = {"orders_sent": sent, "orders_answered": sent - 1, "messages_received": 2 * sent}
    return spool_record(source, "traffic", second, after_s, **counts)


def completion(second: int, clock: str, *times_us: float, last_order: bool = False, source: str = "gateway") -> Record:
    return spool_record(source, "completion", second, clock=clock, last_order=last_order, **buckets(*times_us).sparse())


def buckets(*times_us: float) -> LogBuckets:
    ns = (np.array(times_us) * 1e3).astype(np.int64)
    counts = np.bincount(bucket_of(ns), minlength=BUCKETS)
    return LogBuckets(counts, int(ns.sum()), int(ns.min()), int(ns.max()))


def process(second: int, source: str, cpu_s: float, after_s: float | None = None) -> Record:
    return spool_record(source, "process", second, after_s, cpu_s=cpu_s)


def figures_of(*records: Record, gateways: int = 1) -> Figures:
    figures = Figures(gateways)
    figures.take(records)
    return figures
