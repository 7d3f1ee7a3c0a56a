"""An ingest whose JVM is killed at any step: four libraries read each run's rows once, before and after the kill.

exchange spark ingest ──▶ JVM starts ──▶ tables locked ──▶ files staged, one after another ──▶ renamed, by Python alone
                             ✝               ✝                   ✝       ✝
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import psutil
import pytest
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun

from spark.dataset.replacing import STAGED
from spark.tables.files import LOCK, spark_path
from spark.tables.schemas import KINDS
from tests.machine import PATIENCE_S, until
from tests.spark.dataset.conftest import SparkCommand

pytestmark = pytest.mark.xdist_group("second Spark session")

OrdersByRun = dict[str, int]
SESSION = "org.apache.spark.deploy.SparkSubmit"
LAUNCHER = "org.apache.spark.launcher.Main"


def has_begun(_tables: Path) -> bool:
    return True


def are_tables_locked(tables: Path) -> bool:
    return (tables / LOCK).exists()


def are_files_staged(tables: Path) -> bool:
    return (tables / STAGED).exists()


def is_a_table_staged(tables: Path) -> bool:
    return any((tables / STAGED / KINDS[0]).glob("experiment=*/*/part-*.parquet"))


@pytest.mark.parametrize(
    "has_reached_step",
    [
        pytest.param(has_begun, marks=pytest.mark.long),
        pytest.param(are_tables_locked, marks=pytest.mark.long),
        pytest.param(are_files_staged, marks=pytest.mark.long),
        is_a_table_staged,
    ],
)
def test_a_jvm_killed_during_an_ingest_loses_and_doubles_nothing(
    spark: SparkSession, spark_command: SparkCommand, tmp_path: Path, has_reached_step: Callable[[Path], bool]
) -> None:
    results = tmp_path / "results"
    tables = results / "tables"
    before = {"first": write_run(results / "first", 100)}
    spark_command("ingest", results)
    assert_all_readers_see(spark, tables, before)
    after = before | {"second": write_run(results / "second", 300)}
    (tables / LOCK).unlink()
    exit_code, stderr = killed_ingest(results, lambda: has_reached_step(tables))
    assert "Traceback" not in stderr
    assert exit_code, "the ingest was over before its JVM was killed"
    assert_all_readers_see(spark, tables, before)
    assert spark_command("ingest", results, "--again").exit_code == 0
    assert_all_readers_see(spark, tables, after)


def write_run(run: Path, orders_per_s: int) -> int:
    """Write a run; return how many orders it sent."""
    made_up = MadeUpRun(seconds=10, orders_per_s=orders_per_s)
    made_up.write(run)
    return sum(record["payload"]["orders_sent"] for record in made_up.records if record["kind"] == "traffic")


def killed_ingest(results: Path, is_time: Callable[[], bool]) -> tuple[int, str]:
    """Kill the JVM of `exchange spark ingest --again`; return the command's exit code and stderr."""
    command = [sys.executable, "-m", "exchange_simulation.cli", "spark", "ingest", str(results), "--again"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        jvm = until(lambda: jvm_of(process.pid), "a JVM")
        until(lambda: is_time() or process.poll() is not None, "the step", poll_s=0.002)
        with suppress(psutil.NoSuchProcess):
            jvm.kill()
        _, stderr = process.communicate(timeout=PATIENCE_S)
    return process.returncode, stderr


def jvm_of(pid: int) -> psutil.Process | None:
    """Return the session's JVM; the JVM of the launcher, which makes its command line, comes first and ends."""
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            words = child.cmdline()
            if child.name() == "java" and SESSION in words and LAUNCHER not in words:
                return child
    return None


def assert_all_readers_see(spark: SparkSession, tables: Path, orders: OrdersByRun) -> None:
    """Assert that each library reads these orders of each run, and the records of two components."""
    for rows in rows_by_reader(spark, tables / "traffic").values():
        assert rows.groupby("run")["orders_sent"].sum().to_dict() == orders
    for rows in rows_by_reader(spark, tables / KINDS[0]).values():
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
