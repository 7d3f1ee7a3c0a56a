"""A run's completion times as an HdrHistogram log: an interval a second, of each clock under its tag."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
from exchange_simulation.launching.record.reading import damaged_file_error
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
    clock_seconds = _clock_seconds(folder)
    if not clock_seconds:
        raise UserError(f"{path.parent} holds no completion times, so there is nothing to put into {path.name}")
    with writing(path), whole_file(path) as file, TextIOWrapper(file, "utf-8", write_through=True) as text:
        _write(text, folder, clock_seconds)
    return path


@dataclass(frozen=True)
class ClockSecond:
    """The completion times of one second by one clock."""

    second: int
    clock: str
    buckets: LogBuckets


def _clock_seconds(folder: RunFolder) -> list[ClockSecond]:
    """Return the seconds of the run, each with its clocks in the order of CLOCKS, without warm-up and last order."""
    end_of_warm_up_s = warm_up_s(folder.run)
    payloads_by_key: list[tuple[tuple[int, int], Record]] = []
    for record in folder.spool["completion"]:
        payload = record["payload"]
        if is_analysed(payload) and payload["clock"] in CLOCKS and payload["second"] >= end_of_warm_up_s:
            key = (payload["second"], CLOCKS.index(payload["clock"]))
            payloads_by_key.append((key, payload))
    buckets_by_key = merged_by(payloads_by_key)
    clock_seconds = []
    for second, clock_index in sorted(buckets_by_key):
        buckets = buckets_by_key[second, clock_index]
        clock_seconds.append(ClockSecond(second, CLOCKS[clock_index], buckets))
    return clock_seconds


def _write(file: TextIO, folder: RunFolder, clock_seconds: list[ClockSecond]) -> None:
    hdrh = _library()
    log = hdrh.log.HistogramLogWriter(file)
    log.output_log_format_version()
    start = _start_time(folder)
    log.output_comment(f"[StartTime: {start.timestamp():.3f} (seconds since epoch), {start.isoformat()}]")
    left_out = f"Left out: the first {warm_up_s(folder.run):g} s, the warm-up, and the run's last order."
    for comment in (f"Run {folder.run.get('name', 'without a record')}.", *COMMENTS, left_out):
        log.output_comment(comment)
    log.output_legend()
    for clock_second in clock_seconds:
        histogram = hdrh.histogram.HdrHistogram(1, HIGHEST_NS, DIGITS)
        for value_ns, count in values_and_counts(clock_second.buckets):
            histogram.record_value(value_ns, count)
        file.write(f"Tag={clock_second.clock},")  # the library reads tags but does not write them
        begin_s = clock_second.second
        log.output_interval_histogram(histogram, begin_s, begin_s + 1, max_value_unit_ratio=1.0)


def values_and_counts(buckets: LogBuckets) -> Iterator[tuple[int, int]]:
    """Yield values in ns, each with its number: the middle of each bucket, but the least and the greatest exactly."""
    highest_ns = min(buckets.max_ns, HIGHEST_NS)
    lowest_ns = min(buckets.min_ns, HIGHEST_NS)
    used = np.flatnonzero(buckets.counts)
    counts = buckets.counts[used]
    counts[-1] -= 1
    yield highest_ns, 1
    if counts[0]:
        counts[0] -= 1
        yield lowest_ns, 1
    middles_ns = np.clip(np.rint(bucket_middle_ns(used)), buckets.min_ns, highest_ns)
    for middle_ns, count in zip(middles_ns, counts, strict=True):
        if count:
            yield int(middle_ns), int(count)


def _start_time(folder: RunFolder) -> datetime:
    """Return the run's start; for a run that was killed, the start of its first second, by the end of that second."""
    started_at = folder.run.get("started_at")
    if isinstance(started_at, str):
        try:
            return datetime.fromisoformat(started_at)
        except ValueError as error:
            raise damaged_file_error("run.json", str(error)) from error
    first_record = folder.spool["completion"][0]
    end_of_second_s = first_record["wall_ns"] / 1e9
    seconds_until_then = first_record["payload"]["second"] + 1
    return datetime.fromtimestamp(end_of_second_s - seconds_until_then).astimezone()


def _library() -> Any:
    """Return the package hdrh. UserError if it is missing, as on Linux on ARM, for which it has no wheel."""
    try:
        import hdrh.histogram
        import hdrh.log
    except ImportError as error:
        raise UserError(
            "--hlog needs the library hdrhistogram, which is built with a C compiler here: pip install hdrhistogram"
        ) from error
    return hdrh
