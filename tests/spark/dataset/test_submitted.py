"""A job as a user submits it, to a master and a worker of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.spark.dataset.conftest import Dataset, Kept
from tests.spark.standalone import standalone_cluster


def exchange(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "experiments", *arguments], capture_output=True, text=True, check=False
    )


def table(tables: Path, name: str) -> list[dict[str, Any]]:
    manifest = json.loads(max(tables.glob("manifest-*.json")).read_text())
    return [row for file in manifest["summary"][name] for row in pq.read_table(tables / file).to_pylist()]


@pytest.mark.jvm
def test_a_job_submitted_to_a_cluster_gives_the_numbers_of_this_machine(
    dataset: Dataset, kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of four JVMs, each lives for seconds: the second compiler alone would double their CPU time.
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    shutil.copytree(kept.results / "tables", tmp_path / "tables")
    before = {name: table(tmp_path / "tables", name) for name in dataset.manifest.summary}
    with standalone_cluster(tmp_path) as master:
        job = ["summary", str(tmp_path), "--tables", str(tmp_path / "tables"), "--json"]
        submit = ["spark", "submit", "--master", master, "--conf", "spark.executor.memory=512m", *job]
        command = [sys.executable, "-m", "experiments", *submit]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["arms"]) == len(before["arms"])
    assert {name: table(tmp_path / "tables", name) for name in before} == before
    assert len(list((tmp_path / "tables" / "summary").glob("summary=*"))) == 2  # it was made anew
