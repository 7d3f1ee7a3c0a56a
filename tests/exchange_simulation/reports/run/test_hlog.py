"""The HdrHistogram log, read back with the library, against the log buckets that it was made of."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exchange.measurements import BUCKETS, CLOCKS, LogBuckets, bucket_of
from exchange_simulation.launching.errors import UserError
from exchange_simulation.reports.run.hlog import DIGITS, HIGHEST_NS, values_and_counts, write_hlog
from exchange_simulation.reports.run.run_folder import RunFolder, read_run_folder
from tests.exchange_simulation.reports.run.synthetic_run import START_NS, SyntheticRun

NO_WHEEL = "hdrhistogram has no wheel for Linux on ARM"
HdrHistogram = pytest.importorskip("hdrh.histogram", reason=NO_WHEEL).HdrHistogram
HistogramLogReader = pytest.importorskip("hdrh.log", reason=NO_WHEEL).HistogramLogReader

LARGEST_ERROR = 1 / 1024
"""The largest error of a value that the library reports, relative to the recorded one."""

Intervals = dict[str, list[Any]]
"""The library's histograms of each clock, in the file's order."""


def read_back(path: Path) -> Intervals:
    intervals: Intervals = {}
    reader = HistogramLogReader(str(path), HdrHistogram(1, HIGHEST_NS, DIGITS))
    interval = reader.get_next_interval_histogram()
    while interval:
        intervals.setdefault(interval.get_tag(), []).append(interval)
        interval = reader.get_next_interval_histogram()
    reader.close()
    return intervals


@dataclass(frozen=True)
class WrittenLog:
    content: RunFolder
    """The run of the log."""
    intervals: Intervals

    def buckets_of(self, clock: str, second: int) -> LogBuckets:
        """Return the log buckets in the run's spool."""
        for record in self.content.spool["completion"]:
            payload = record["payload"]
            if payload["clock"] == clock and payload["second"] == second:
                return LogBuckets.from_sparse(payload)
        raise LookupError(f"no record of {clock} in second {second}")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> WrittenLog:
    folder = SyntheticRun(seconds=3).write(tmp_path_factory.mktemp("results") / "run")
    content = read_run_folder(folder)
    return WrittenLog(content, read_back(write_hlog(folder / "run.hlog", content)))


@pytest.mark.parametrize("clock", CLOCKS)
def test_counts_are_exact_and_percentiles_within_the_stated_error(written: WrittenLog, clock: str) -> None:
    assert len(written.intervals[clock]) == 3
    for second, interval in enumerate(written.intervals[clock]):
        buckets = written.buckets_of(clock, second)
        assert buckets.count == 8_000
        assert interval.get_total_count() == 8_000
        for percent in (25.0, 50.0, 75.0, 90.0, 99.0):
            recorded_ns = buckets.percentile_ns(percent)
            reported_ns = interval.get_value_at_percentile(percent)
            assert 0.9999 * recorded_ns - 1 <= reported_ns <= recorded_ns * (1 + LARGEST_ERROR) + 1
        assert buckets.max_ns <= interval.get_value_at_percentile(100) <= buckets.max_ns * (1 + LARGEST_ERROR)
        assert buckets.min_ns * (1 - LARGEST_ERROR) <= interval.get_min_value() <= buckets.min_ns


def test_an_interval_lies_in_its_second_after_the_run_s_start(written: WrittenLog) -> None:
    started_ms = 1_763_694_312_000
    for second, interval in enumerate(written.intervals["due"]):
        assert interval.get_start_time_stamp() == pytest.approx(started_ms + 1_000 * second)
        assert interval.get_end_time_stamp() == pytest.approx(started_ms + 1_000 * (second + 1))


def test_warm_up_and_last_order_are_left_out(tmp_path: Path) -> None:
    folder = SyntheticRun(seconds=2).write(tmp_path / "run", settings={"warm_up_s": 1.0})
    content = read_run_folder(folder)
    last_record = content.spool["completion"][-1]
    last_order = {**last_record, "payload": {**last_record["payload"], "last_order": True}}
    content.spool["completion"].append(last_order)
    intervals = read_back(write_hlog(folder / "run.hlog", content))
    assert intervals.keys() == set(CLOCKS)
    for clock in CLOCKS:
        (second_after_warm_up,) = intervals[clock]
        assert second_after_warm_up.get_total_count() == 8_000


def test_the_log_of_a_killed_run_starts_at_the_run_s_first_second(written: WrittenLog, tmp_path: Path) -> None:
    without_record = RunFolder({}, written.content.spool)
    intervals = read_back(write_hlog(tmp_path / "run.hlog", without_record))
    assert intervals["lag"][0].get_start_time_stamp() == pytest.approx(START_NS / 1e6)


@pytest.mark.parametrize("times_ns", [[7], [0, 0], [3, 900], [1, 1, 1, 2**46]])
def test_every_order_is_in_the_log_once_and_the_extremes_are_exact(times_ns: list[int]) -> None:
    counts = np.bincount(bucket_of(times_ns), minlength=BUCKETS)
    buckets = LogBuckets(counts, sum(times_ns), min(times_ns), max(times_ns))
    entries = list(values_and_counts(buckets))
    values = [value for value, _ in entries]
    assert sum(count for _, count in entries) == len(times_ns)
    assert min(values) == min(times_ns)
    assert max(values) == min(max(times_ns), HIGHEST_NS)
    histogram = HdrHistogram(1, HIGHEST_NS, DIGITS)
    for value, count in entries:
        assert histogram.record_value(value, count)


def test_a_run_without_completion_times_has_no_log(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no completion times"):
        write_hlog(tmp_path / "run.hlog", RunFolder({}, {"completion": []}))
    assert list(tmp_path.iterdir()) == []


def test_the_error_for_a_missing_library_says_how_to_install_it(
    written: WrittenLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hdrh.histogram", None)
    with pytest.raises(UserError, match="pip install hdrhistogram"):
        write_hlog(tmp_path / "run.hlog", written.content)
    assert list(tmp_path.iterdir()) == []
