"""The HdrHistogram log, read back with the library, against the log buckets that it was made of."""

from __future__ import annotations

import sys
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

WORST = 1 / 1024


def read_back(path: Path) -> dict[str, list[Any]]:
    """Intervals by tag, in the file's order."""
    found: dict[str, list[Any]] = {}
    reader = HistogramLogReader(str(path), HdrHistogram(1, HIGHEST_NS, DIGITS))
    while interval := reader.get_next_interval_histogram():
        found.setdefault(interval.get_tag(), []).append(interval)
    reader.close()
    return found


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, dict[str, list[Any]]]:
    run = SyntheticRun(seconds=3)
    folder = run.write(tmp_path_factory.mktemp("results") / "run")
    known = read_run_folder(folder)
    return known, read_back(write_hlog(folder / "run.hlog", known))


def buckets_of(known: RunFolder, clock: str, second: int) -> LogBuckets:
    payloads = [record["payload"] for record in known.spool["completion"]]
    return LogBuckets.from_sparse(next(p for p in payloads if (p["clock"], p["second"]) == (clock, second)))


@pytest.mark.parametrize("clock", CLOCKS)
def test_counts_are_exact_and_percentiles_within_the_stated_error(written: Any, clock: str) -> None:
    known, intervals = written
    assert len(intervals[clock]) == 3
    for second, interval in enumerate(intervals[clock]):
        buckets = buckets_of(known, clock, second)
        assert interval.get_total_count() == buckets.count == 8_000
        for percent in (25.0, 50.0, 75.0, 90.0, 99.0):
            ours = buckets.percentile_ns(percent)
            assert 0.9999 * ours - 1 <= interval.get_value_at_percentile(percent) <= ours * (1 + WORST) + 1
        assert buckets.max_ns <= interval.get_value_at_percentile(100) <= buckets.max_ns * (1 + WORST)
        assert buckets.min_ns * (1 - WORST) <= interval.get_min_value() <= buckets.min_ns


def test_an_interval_lies_in_its_second_after_the_run_s_start(written: Any) -> None:
    _, intervals = written
    started_ms = 1_763_694_312_000
    starts = [interval.get_start_time_stamp() - started_ms for interval in intervals["due"]]
    assert starts == pytest.approx([0, 1_000, 2_000])
    assert [i.get_end_time_stamp() - i.get_start_time_stamp() for i in intervals["due"]] == pytest.approx([1_000] * 3)


def test_warm_up_and_last_order_are_left_out(tmp_path: Path) -> None:
    folder = SyntheticRun(seconds=2).write(tmp_path / "run", settings={"warm_up_s": 1.0})
    known = read_run_folder(folder)
    known.spool["completion"].append(
        {**known.spool["completion"][-1], "payload": {**known.spool["completion"][-1]["payload"], "last_order": True}}
    )
    intervals = read_back(write_hlog(folder / "run.hlog", known))
    counts = {clock: [interval.get_total_count() for interval in found] for clock, found in intervals.items()}
    assert counts == {clock: [8_000] for clock in CLOCKS}


def test_a_killed_run_s_log_starts_when_its_first_second_began(written: Any, tmp_path: Path) -> None:
    intervals = read_back(write_hlog(tmp_path / "run.hlog", RunFolder({}, written[0].spool)))
    assert intervals["lag"][0].get_start_time_stamp() == pytest.approx(START_NS / 1e6)


@pytest.mark.parametrize("times_ns", [[7], [0, 0], [3, 900], [1, 1, 1, 2**46]])
def test_every_order_is_told_once_whatever_it_took(times_ns: list[int]) -> None:
    counts = np.bincount(bucket_of(times_ns), minlength=BUCKETS)
    expected = dict.fromkeys(sorted(times_ns), 0)
    buckets = LogBuckets(counts, sum(times_ns), min(times_ns), max(times_ns))
    entries = list(values_and_counts(buckets))
    assert sum(count for _, count in entries) == len(times_ns)
    assert min(value for value, _ in entries) == min(expected)
    assert max(value for value, _ in entries) == min(max(expected), HIGHEST_NS)
    histogram = HdrHistogram(1, HIGHEST_NS, DIGITS)
    assert all(histogram.record_value(*entry) for entry in entries)


def test_a_run_that_answered_nothing_has_no_log(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no completion times"):
        write_hlog(tmp_path / "run.hlog", RunFolder({}, {"completion": []}))
    assert list(tmp_path.iterdir()) == []


def test_without_the_library_it_is_said_what_to_do(
    written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hdrh.histogram", None)
    with pytest.raises(UserError, match="pip install hdrhistogram"):
        write_hlog(tmp_path / "run.hlog", written[0])
    assert list(tmp_path.iterdir()) == []
