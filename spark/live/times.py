"""Figures of completion times from the records of one second, merged: those that spark.summary.times gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from spark.tables.histograms import COUNTED, added, figures

HISTOGRAM = pa.schema(
    [
        *((name, pa.int64()) for name in COUNTED),
        ("bucket", pa.list_(pa.int32())),
        ("bucket_count", pa.list_(pa.int64())),
    ]
)


def merged_figures(payloads: Sequence[dict[str, Any]]) -> dict[str, float]:
    """FIGURES of completion payloads of one second and clock; empty where they hold no order."""
    told = [payload for payload in payloads if payload["bucket"]]
    if not told:
        return {}
    merged: dict[str, float] = figures(added(pa.Table.from_pylist(told, HISTOGRAM), ()), ()).to_pylist()[0]
    return merged
