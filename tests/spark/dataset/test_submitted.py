"""A job as a user submits it, and queries, on a cluster of a master and two workers."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark.dataset.folder import LocalFolder
from spark.dataset.views import create_views
from spark.gold.views import VIEWS, create_gold_views, gold_views_over
from spark.sessions.session import open_session
from spark.tables.schemas import EVENTS
from tests.machine import PATIENCE_S, until
from tests.own_process import in_own_process
from tests.spark.dataset.conftest import Dataset, RecordedRuns, SparkCommand
from tests.spark.standalone import WORK_FOLDERS, standalone_cluster

pytestmark = pytest.mark.xdist_group("second Spark session")


def exchange(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "exchange_simulation.cli", *arguments], capture_output=True, text=True, check=False
    )


def table(tables: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(tables / name).to_pylist()
    return rows


SUMMARY = ("summary", "seconds", "arms", "comparison")


@pytest.mark.jvm
def test_a_job_submitted_to_a_cluster_gives_the_numbers_of_this_machine(
    dataset: Dataset, recorded: RecordedRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Four JVMs live for seconds each: the second compiler alone would double their CPU time.
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    shutil.copytree(recorded.results / "tables", tmp_path / "tables")
    first = (tmp_path / "tables" / "summary" / "part-0.parquet").stat().st_ino
    before = {name: table(tmp_path / "tables", name) for name in SUMMARY}
    with standalone_cluster(tmp_path) as master:
        job = ["summary", str(tmp_path), "--tables", str(tmp_path / "tables"), "--json"]
        submit = ["spark", "submit", "--master", master, "--conf", "spark.executor.memory=512m", *job]
        command = [sys.executable, "-m", "exchange_simulation.cli", *submit]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["arms"]) == len(before["arms"])
    assert {name: table(tmp_path / "tables", name) for name in before} == before
    assert (tmp_path / "tables" / "summary" / "part-0.parquet").stat().st_ino != first  # it was made anew


def rows_of_views(spark: SparkSession, tables: str) -> dict[str, list[str]]:
    """Return the rows of each table and each view over the tables, in words and sorted."""
    names = create_views(spark, LocalFolder(f"file://{tables}"))
    create_gold_views(spark, names)
    rows_by_name = {}
    for name in [*names, *gold_views_over(names)]:
        rows = spark.table(name).collect()
        rows_by_name[name] = sorted(", ".join(map(_in_words, row)) for row in rows)
    return rows_by_name


def _in_words(value: Any) -> str:
    """Return a value in words; sums of floats may differ in their last digits, since executors add in any order."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def rows_on(master: str, tables: str) -> dict[str, list[str]]:
    """Return `rows_of_views`, as a cluster gives them."""
    with open_session(master, settings={"spark.executor.memory": "512m"}) as spark:
        return rows_of_views(spark, tables)


@pytest.mark.jvm
@pytest.mark.long
def test_every_table_and_view_is_the_same_on_a_cluster_of_two_workers(
    spark: SparkSession, events: Path, spark_command: SparkCommand, tmp_path: Path
) -> None:
    assert spark_command("summary", events).exit_code == 0
    tables = str(events / "tables")
    expected = rows_of_views(spark, tables)
    with standalone_cluster(tmp_path) as master:
        assert in_own_process(rows_on, master, tables) == expected
    assert {"seconds", "summary", *EVENTS, *VIEWS} <= expected.keys()
    for work_folder in WORK_FOLDERS:
        assert any((tmp_path / work_folder).glob("app-*/*")), "each worker had an executor"


@pytest.mark.jvm
@pytest.mark.long
def test_a_submitted_job_has_the_engine(events: Path, tmp_path: Path) -> None:
    """Its kernels could not be loaded from our packages' zip: a simulation ended in a traceback."""
    results = tmp_path / "results"
    shutil.copytree(events, results, ignore=shutil.ignore_patterns("tables"))
    simulation = ["simulate", "--instruments", "4", "--orders", "4e3", "--json", "--results", str(tmp_path / "sim")]
    here = exchange(*simulation)
    with standalone_cluster(tmp_path) as master:
        submit = ["spark", "submit", "--master", master, "--conf", "spark.executor.memory=512m"]
        there = exchange(*submit, *simulation)
        ingest = exchange(*submit, "ingest", str(results), "--events")
    assert there.returncode == 0, there.stderr
    record = there.stdout[there.stdout.index("{") :]  # spark-submit prints a job's stderr on stdout, too
    assert json.loads(record)["checksums"] == json.loads(here.stdout)["checksums"]
    assert ingest.returncode == 0, ingest.stderr
    for name in EVENTS:
        assert pq.read_table(results / "tables" / name).equals(pq.read_table(events / "tables" / name))


@pytest.mark.jvm
@pytest.mark.long
def test_a_submitter_that_is_killed_leaves_no_process_and_no_folder(
    recorded: RecordedRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    job = [
        "spark",
        "submit",
        "--master",
        "local[1]",
        "ingest",
        str(recorded.results),
        "--tables",
        str(tmp_path / "tables"),
    ]
    with subprocess.Popen([sys.executable, "-m", "exchange_simulation.cli", *job]) as submitter:
        until(lambda: list(tmp_path.glob("tables/*")) or submitter.poll() is not None, "its Python")
        assert submitter.poll() is None
        others = psutil.Process(submitter.pid).children(recursive=True)
        submitter.send_signal(signal.SIGKILL)
    gone, alive = psutil.wait_procs(others, timeout=PATIENCE_S)
    assert len(gone) >= 2
    assert not alive
    assert [str(p) for p in tmp_path.glob("exchange-spark-*/**/*")] == []
    assert not list(tmp_path.glob("exchange-spark-*"))
