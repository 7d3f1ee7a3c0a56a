"""A run's completion times as an HdrHistogram log: an interval a second, of each clock under its tag."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from exchange.json_records import Record
from exchange.measurements import CLOCKS, OCTAVES, LogBuckets, bucket_middle_ns
from exchange.seconds import is_analysed, merged_by
from exchange_simulation.launching.errors import UserError, writing
from exchange_simulation.launching.files import whole_file
from exchange_simulation.launching.record.reading import damaged
from exchange_simulation.reports.run.run_folder import RunFolder, warm_up_s

FILE = "completion.hlog"
DIGITS = 3
"""Significant digits of a histogram: a value that it reports is at most 1/1024 above the one that was recorded."""
HIGHEST_NS = 2**OCTAVES - 1

COMMENTS = (
    "Values and Interval_Max in ns. Tags: due, completion from due time; handed_over, completion from handing over; "
    "lag, handed over minus due.",
    "A value is a log bucket's, at most 0.27 % off; a reader of this file sees it up to 0.1 %, or 1 ns, higher. "
    "The greatest of an interval is off by that 0.1 % alone; counts are exact.",
    "StartTime is when the run was started; intervals count from its first order.",
)


def write_hlog(path: Path, folder: RunFolder) -> Path:
    """Write the log and return its path. UserError if the spool holds no completion, or the library is missing."""
    seconds = _seconds(folder)
    if not seconds:
        raise UserError(f"{path.parent} holds no completion times, so there is nothing to put into {path.name}")
    with writing(path), whole_file(path) as file, TextIOWrapper(file, "utf-8", write_through=True) as text:
        _write(text, folder, seconds)
    return path


def _seconds(folder: RunFolder) -> list[tuple[int, str, LogBuckets]]:
    """Return (second, clock, buckets) in the order of time, without warm-up and last order."""
    from_s = warm_up_s(folder.run)
    keyed: list[tuple[tuple[int, int], Record]] = []
    for record in folder.spool["completion"]:
        payload = record["payload"]
        if is_analysed(payload) and payload["clock"] in CLOCKS and payload["second"] >= from_s:
            keyed.append(((payload["second"], CLOCKS.index(payload["clock"])), payload))
    histograms = merged_by(keyed)
    return [(second, CLOCKS[clock], histograms[second, clock]) for second, clock in sorted(histograms)]


def _write(file: TextIO, folder: RunFolder, seconds: list[tuple[int, str, LogBuckets]]) -> None:
    hdrh = _library()
    log = hdrh.log.HistogramLogWriter(file)
    log.output_log_format_version()
    started = _started(folder)
    log.output_comment(f"[StartTime: {started.timestamp():.3f} (seconds since epoch), {started.isoformat()}]")
    left_out = f"Left out: the first {warm_up_s(folder.run):g} s, the warm-up, and the run's last order."
    for comment in (f"Run {folder.run.get('name', 'without a record')}.", *COMMENTS, left_out):
        log.output_comment(comment)
    log.output_legend()
    for second, clock, buckets in seconds:
        histogram = hdrh.histogram.HdrHistogram(1, HIGHEST_NS, DIGITS)
        for value_ns, count in values_of(buckets):
            histogram.record_value(value_ns, count)
        file.write(f"Tag={clock},")  # the library reads tags but does not write them
        log.output_interval_histogram(histogram, second, second + 1, max_value_unit_ratio=1.0)


def values_of(buckets: LogBuckets) -> Iterator[tuple[int, int]]:
    """Yield (ns, how often): the middle of each bucket, but the least and the greatest value as they are."""
    index = np.flatnonzero(buckets.counts)
    counts = buckets.counts[index]
    counts[-1] -= 1
    yield min(buckets.max_ns, HIGHEST_NS), 1
    if counts[0]:
        counts[0] -= 1
        yield min(buckets.min_ns, HIGHEST_NS), 1
    middles = np.clip(np.rint(bucket_middle_ns(index)), buckets.min_ns, min(buckets.max_ns, HIGHEST_NS))
    yield from ((int(middle), int(count)) for middle, count in zip(middles, counts, strict=True) if count)


def _started(folder: RunFolder) -> datetime:
    """Return the run's start; if it was killed, the start of its first second, which is reported when it ends."""
    at = folder.run.get("started_at")
    if isinstance(at, str):
        try:
            return datetime.fromisoformat(at)
        except ValueError as error:
            raise damaged("run.json", str(error)) from error
    first = folder.spool["completion"][0]
    return datetime.fromtimestamp(first["wall_ns"] / 1e9 - 1 - first["payload"]["second"]).astimezone()


def _library() -> Any:
    """Return the package hdrh, which has no wheel for Linux on ARM, so it is not installed there."""
    try:
        import hdrh.histogram
        import hdrh.log
    except ImportError as error:
        raise UserError(
            "--hlog needs the library hdrhistogram, which is built with a C compiler here: pip install hdrhistogram"
        ) from error
    return hdrh
