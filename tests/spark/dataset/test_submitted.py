"""A job as a user submits it, to a master and a worker of its own."""

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

from tests.machine import PATIENCE_S, until
from tests.spark.dataset.conftest import Dataset, RecordedRuns
from tests.spark.standalone import standalone_cluster

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
    # Of four JVMs, each lives for seconds: the second compiler alone would double their CPU time.
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
