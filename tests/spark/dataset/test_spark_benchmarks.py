"""The benchmark of the summary reads the table as the command leaves it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.spark_summary import SUMMARY, worst_errors_percent
from benchmarks.synthetic_runs import write_runs
from tests.spark.dataset.conftest import SparkCommand


def test_the_timed_table_has_numpy_s_percentiles(spark_command: SparkCommand, tmp_path: Path) -> None:
    exact = write_runs(tmp_path, number=2, seconds=1)
    assert spark_command("summary", tmp_path, "--tables", tmp_path).exit_code == 0
    assert max(worst_errors_percent(tmp_path, exact)) < 0.3


def test_a_table_without_one_of_the_runs_fails_the_benchmark(tmp_path: Path) -> None:
    exact = write_runs(tmp_path, number=2, seconds=1)
    (tmp_path / SUMMARY).mkdir()
    pq.write_table(pq.read_table(tmp_path / "runs").slice(0, 1), tmp_path / SUMMARY / "part-0.parquet")
    with pytest.raises(AssertionError, match="has not one row a run"):
        worst_errors_percent(tmp_path, exact)
