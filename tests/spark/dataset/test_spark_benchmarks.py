"""The benchmark of the summary reads the tables as the commands leave them."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from benchmarks.spark_summary import FIGURES, SUMMARY, summarize_rows, worst_errors_percent
from benchmarks.synthetic_runs import write_runs
from tests.spark.dataset.conftest import SparkCommand


def test_both_timed_tables_have_numpy_s_percentiles(
    spark: SparkSession, spark_command: SparkCommand, tmp_path: Path
) -> None:
    exact = write_runs(tmp_path, number=2, seconds=1)
    assert spark_command("summary", tmp_path, "--tables", tmp_path).exit_code == 0
    summarize_rows(spark, tmp_path)
    assert max(worst_errors_percent(tmp_path, exact)) < 0.3


def test_a_table_without_one_of_the_runs_fails_the_benchmark(tmp_path: Path) -> None:
    exact = write_runs(tmp_path, number=2, seconds=1)
    for table in (SUMMARY, FIGURES):
        (tmp_path / table).mkdir()
    pq.write_table(pq.read_table(tmp_path / "runs").slice(0, 1), tmp_path / SUMMARY / "part-0.parquet")
    with pytest.raises(AssertionError, match="has not one row a run"):
        worst_errors_percent(tmp_path, exact)
