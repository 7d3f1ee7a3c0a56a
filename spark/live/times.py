"""Figures of completion times from the records of one second, merged: those that spark.percentiles gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exchange.measurements import bucket_middle_ns
from spark.percentiles import NS_PER_US, PERCENTS


def merged_figures(payloads: Sequence[dict[str, Any]]) -> dict[str, float]:
    """FIGURES of completion payloads of one second and clock; empty where they hold no order."""
    payloads = [payload for payload in payloads if payload["bucket"]]
    if not payloads:
        return {}
    buckets = np.concatenate([np.asarray(payload["bucket"], np.int64) for payload in payloads])
    counts = np.concatenate([np.asarray(payload["bucket_count"], np.int64) for payload in payloads])
    order = np.argsort(buckets, kind="stable")
    ranks, total = np.cumsum(counts[order]), int(counts.sum())
    least, most = min(p["min_ns"] for p in payloads), max(p["max_ns"] for p in payloads)
    figures: dict[str, float] = {"count": total, "mean_us": sum(p["sum_ns"] for p in payloads) / total / NS_PER_US}
    figures["min_us"] = least / NS_PER_US
    for name, percent in PERCENTS.items():
        at = min(int(np.searchsorted(ranks, max(np.ceil(total * percent / 100.0), 1))), len(order) - 1)
        figures[f"{name}_us"] = float(np.clip(bucket_middle_ns(buckets[order[at]]), least, most)) / NS_PER_US
    figures["max_us"] = most / NS_PER_US
    return figures
