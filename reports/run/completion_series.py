"""Completion times of the spool's log buckets.

Buckets merge by adding counts, so a point for many seconds is as exact as one for a single second.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from exchange.measurements import CLOCKS, LogBuckets
from exchange.seconds import is_analysed, is_full, merged
from reports.drawing.series import Floats, Line, middles_s
from reports.run.run_folder import Record

PERCENTS = {"p50": 50.0, "p99": 99.0, "max": 100.0}
CURVE_POINTS = 240


def completion_lines(completions: list[Record], point_s: int) -> dict[str, Line]:
    """p50, p99 and max of the completion time from handing over, in us, over time; the warm-up too."""

    def point_of(record: Record) -> int:
        return int(record["payload"]["second"]) // point_s

    handed_over = sorted(of_clock(completions, "handed_over"), key=point_of)
    if not handed_over:
        return {}
    y = np.full((len(PERCENTS), point_of(handed_over[-1]) + 1), np.nan)
    counts: list[int] = []
    for point, records in groupby(handed_over, key=point_of):
        buckets = merged(record["payload"] for record in records)
        counts.append(buckets.count)
        y[:, point] = [_percentile_us(buckets, percent) for percent in PERCENTS.values()]
    y = y if is_full(counts[-1], counts[:-1]) else y[:, :-1]
    return {name: Line(middles_s(y.shape[1], point_s), row) for name, row in zip(PERCENTS, y, strict=True)}


def percentile_curves(completions: list[Record], warm_up_s: float) -> dict[str, Line]:
    """Each clock's time in us over the nines, -log10(1 - p), up to where one order is left."""
    warm = [record for record in completions if record["payload"]["second"] >= warm_up_s]
    histograms = {clock: merged(record["payload"] for record in of_clock(warm, clock)) for clock in CLOCKS}
    return {clock: _percentile_curve(buckets) for clock, buckets in histograms.items() if buckets.count > 1}


def of_clock(completions: list[Record], clock: str) -> list[Record]:
    """As in run.json, analysis leaves out the last order, which has records of its own."""
    return [r for r in completions if r["payload"]["clock"] == clock and is_analysed(r["payload"])]


def _percentile_curve(buckets: LogBuckets) -> Line:
    nines = np.linspace(0.0, np.log10(buckets.count), CURVE_POINTS)
    percents = percents_of(nines)
    return Line(nines, np.array([_percentile_us(buckets, percent) for percent in percents]))


def percents_of(nines: Floats) -> Floats:
    """The last place is the slowest order's, whatever share of the orders that is."""
    percents = 100.0 * (1.0 - 10.0**-nines)
    percents[-1] = 100.0
    return percents


def _percentile_us(buckets: LogBuckets, percent: float) -> float:
    """The maximum is exact, so not a bucket's middle; a log axis has no place for less than 1 ns."""
    value_ns = buckets.max_ns if percent >= 100.0 else buckets.percentile_ns(percent)
    return max(value_ns, 1.0) / 1e3
