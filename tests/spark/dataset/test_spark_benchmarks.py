"""The benchmarks of Spark check the answers that they time."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks import spark_ingest, spark_long_runs, spark_market
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


def test_spark_and_duckdb_agree_on_runs_of_an_hour(spark_command: SparkCommand, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    write_runs(tables, number=2, seconds=3, with_single_rows=False)
    assert spark_command("summary", tables, "--tables", tables).exit_code == 0
    for answer in spark_long_runs.ANSWERS.values():
        answer(tables, tmp_path)
    spark_long_runs.check_agreement(tables, tmp_path)
    of_runs = pq.read_table(tmp_path / spark_long_runs.RUNS_FILE)
    two_percentiles = pq.read_table(tmp_path / spark_long_runs.PERCENTILES_FILE)
    assert two_percentiles["p99_us"] == of_runs.filter(pc.equal(of_runs["clock"], "due"))["p99_us"]
    file = tmp_path / spark_long_runs.SECONDS_FOLDER / "001.parquet"
    seconds = pq.read_table(file)
    wrong = pc.multiply(seconds["p99_us"], 1.02)
    place = seconds.column_names.index("p99_us")
    pq.write_table(seconds.set_column(place, "p99_us", wrong), file)
    with pytest.raises(AssertionError, match=r"seconds: handed_over_p99_us differs by"):
        spark_long_runs.check_agreement(tables, tmp_path)


@pytest.mark.long
def test_a_market_s_file_is_whole_and_its_quotes_are_those_of_duckdb(tmp_path: Path) -> None:
    market = ("--instruments", "5", "--orders", "20_000", "--trades", "--quotes")
    trades = spark_market.simulate(str(tmp_path), market)
    tables = tmp_path / spark_market.NAME / "market"
    assert spark_market.export(tables, trades)[0] > 100
    ours, reference = spark_market.as_of(tables, repeats=1)
    assert (len(ours), len(reference)) == (1, 1)


@pytest.mark.long
def test_an_ingest_of_events_has_a_cost_and_all_orders(tmp_path: Path) -> None:
    results = spark_ingest.recorded(tmp_path, 10_000)
    assert spark_ingest.ingest_events(results, 10_000).cpu_s > 0
    with pytest.raises(AssertionError, match="of 20,000 orders"):
        spark_ingest.ingest_events(results, 20_000)
