"""An ingest whose JVM is killed: four readers see each run once, before and after it, whenever that is.

exchange spark ingest ──▶ JVM starts ──▶ tables locked ──▶ files staged, one after another ──▶ renamed, by Python alone
                             ✝               ✝                   ✝       ✝
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
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
from tests.spark.dataset.conftest import Typed

pytestmark = pytest.mark.xdist_group("second Spark session")

Sums = dict[str, int]
SESSION, LAUNCHER = "org.apache.spark.deploy.SparkSubmit", "org.apache.spark.launcher.Main"
READERS = ("spark", "pandas", "duckdb", "polars")
STEPS: dict[str, Callable[[Path], bool]] = {
    "its JVM starts": lambda tables: True,
    "the tables are locked": lambda tables: (tables / LOCK).exists(),
    "files are staged": lambda tables: (tables / STAGED).exists(),
    "a table is staged": lambda tables: any((tables / STAGED / KINDS[0]).glob("experiment=*/*/part-*.parquet")),
}
LAST = "a table is staged"


@pytest.mark.parametrize(
    "step", [LAST, *(pytest.param(step, marks=pytest.mark.long) for step in STEPS if step != LAST)]
)
def test_a_jvm_that_is_killed_in_an_ingest_loses_and_doubles_nothing(
    spark: SparkSession, typed: Typed, tmp_path: Path, step: str
) -> None:
    results, tables = tmp_path / "results", tmp_path / "results" / "tables"
    before = {"first": orders_of(results / "first", 100)}
    typed("ingest", results)
    assert_all_see(spark, tables, before)
    after = before | {"second": orders_of(results / "second", 300)}
    (tables / LOCK).unlink()
    code, said = killed_ingest(results, lambda: STEPS[step](tables))
    assert "Traceback" not in said
    assert code, "the ingest was over before its JVM was killed"
    assert_all_see(spark, tables, before)
    assert typed("ingest", results, "--again").exit_code == 0
    assert_all_see(spark, tables, after)


def orders_of(run: Path, orders_per_s: int) -> int:
    """Write a run; return how many orders it sent."""
    made_up = MadeUpRun(seconds=10, orders_per_s=orders_per_s)
    made_up.write(run)
    return sum(record["payload"]["orders_sent"] for record in made_up.records if record["kind"] == "traffic")


def killed_ingest(results: Path, is_time: Callable[[], bool]) -> tuple[int, str]:
    """Kill the JVM of `exchange spark ingest --again`; return the command's exit code and what it said."""
    command = [sys.executable, "-m", "exchange_simulation.cli", "spark", "ingest", str(results), "--again"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        jvm = until(lambda: jvm_of(process.pid), "a JVM")
        until(lambda: is_time() or process.poll() is not None, "the step", poll_s=0.002)
        with suppress(psutil.NoSuchProcess):
            jvm.kill()
        _, said = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said


def jvm_of(pid: int) -> psutil.Process | None:
    """The session's JVM; another one, which puts its command together, comes first and ends."""
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            if child.name() == "java" and {SESSION, LAUNCHER}.intersection(child.cmdline()) == {SESSION}:
                return child
    return None


def assert_all_see(spark: SparkSession, tables: Path, orders: Sums) -> None:
    """The same orders of each run, and two components, by the plain call of each library."""
    assert readers_of(spark, tables / "traffic", "orders_sent") == dict.fromkeys(READERS, orders)
    assert readers_of(spark, tables / KINDS[0], "1") == dict.fromkeys(READERS, dict.fromkeys(orders, 2))


def readers_of(spark: SparkSession, table: Path, column: str) -> dict[str, Sums]:
    """The sum of a column by run; column 1 counts rows."""
    rows = {
        "spark": spark.read.parquet(spark_path(table)).toPandas(),
        "pandas": pd.read_parquet(table),
        "duckdb": duckdb.sql(f"select * from '{table}/**/*.parquet'").df(),
        "polars": pl.read_parquet(table).to_pandas(),
    }
    return {name: sums(found.assign(**{"1": 1}), column) for name, found in rows.items()}


def sums(rows: pd.DataFrame, column: str) -> Sums:
    counted: Counter[str] = Counter()
    for run, value in zip(rows["run"], rows[column], strict=True):
        counted[str(run)] += int(value)
    return dict(counted)
