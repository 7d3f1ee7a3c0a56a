"""An ingest that is killed while it reads a spool: four libraries read each run's rows once, before and after the kill.

exchange spark ingest ──▶ tables locked ──▶ files staged, until a spool's file is a pipe without a writer ──▶ ✝
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun

from exchange.records import SESSION
from spark.dataset.replacing import STAGED
from spark.tables.files import spark_path
from tests.machine import PATIENCE_S, until
from tests.spark.dataset.conftest import SparkCommand

OrdersByRun = dict[str, int]


def test_a_killed_ingest_loses_and_doubles_nothing(
    spark: SparkSession, spark_command: SparkCommand, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    tables = results / "tables"
    before = {"first": write_run(results / "first", 100)}
    assert spark_command("ingest", results).exit_code == 0
    after = before | {"second": write_run(results / "second", 300)}
    pipe = results / "second" / "spool" / "9.jsonl"
    os.mkfifo(pipe)
    kill_ingest(results, tables)
    assert_all_readers_see(spark, tables, before)
    pipe.unlink()
    assert spark_command("ingest", results, "--again").exit_code == 0
    assert_all_readers_see(spark, tables, after)


def write_run(run: Path, orders_per_s: int) -> int:
    """Write a run; return how many orders it sent."""
    made_up = MadeUpRun(seconds=10, orders_per_s=orders_per_s)
    made_up.write(run)
    return sum(record["payload"]["orders_sent"] for record in made_up.records if record["kind"] == "traffic")


def kill_ingest(results: Path, tables: Path) -> None:
    """Kill `exchange spark ingest --again` once it has staged files, while it waits for a pipe."""
    command = [sys.executable, "-m", "exchange_simulation.cli", "spark", "ingest", str(results), "--again"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            until(lambda: any((tables / STAGED / SESSION).glob("experiment=*/part-*.parquet")), "staged files")
        finally:  # without a signal, the process would wait for the pipe forever
            process.kill()
            process.wait(timeout=PATIENCE_S)


def assert_all_readers_see(spark: SparkSession, tables: Path, orders: OrdersByRun) -> None:
    """Assert that each library reads these orders of each run, and the sessions of two components."""
    for rows in rows_by_reader(spark, tables / "traffic").values():
        assert rows.groupby("run")["orders_sent"].sum().to_dict() == orders
    for rows in rows_by_reader(spark, tables / SESSION).values():
        assert rows.groupby("run").size().to_dict() == dict.fromkeys(orders, 2)


def rows_by_reader(spark: SparkSession, table: Path) -> dict[str, pd.DataFrame]:
    """Return the table's rows as the plain call of each library reads them."""
    rows = {
        "spark": spark.read.parquet(spark_path(table)).toPandas(),
        "pandas": pd.read_parquet(table),
        "duckdb": duckdb.sql(f"select * from '{table}/**/*.parquet'").df(),
        "polars": pl.read_parquet(table).to_pandas(),
    }
    for frame in rows.values():
        frame["run"] = frame["run"].astype(str)
    return rows
