"""A user without an entry in /etc/passwd and without a home works with Spark, over every transport."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.broker import need_rabbitmq
from tests.exchange_command import FinishedCommand, command
from tests.machine import PATIENCE_S, lacks

pytestmark = pytest.mark.jvm

NO_NAME = (
    "unshare",
    "--user",
    "--map-user=54321",
    "--map-group=54321",
    "env",
    "--unset=HOME",
    "--unset=XDG_STATE_HOME",
    "--unset=XDG_CACHE_HOME",
)
"""Starts a program as a user without an entry in /etc/passwd and without a home."""


@pytest.fixture
def nameless(tmp_path: Path) -> Path:
    """A folder for what a nameless user leaves; it holds the temporary files."""
    if shutil.which("unshare") is None or subprocess.run([*NO_NAME, "true"], check=False).returncode:
        lacks("namespaces of users")
    (tmp_path / "scratch").mkdir()
    return tmp_path


def run_nameless(folder: Path, *words: object) -> FinishedCommand:
    environment = {name: value for name, value in os.environ.items() if name != "EXCHANGE_BROKER_DIR"}
    environment["TMPDIR"] = str(folder / "scratch")
    done = subprocess.run(
        [*NO_NAME, *command(*words)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=environment,
        cwd=folder,
        check=False,
    )
    return FinishedCommand(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("transport", ["zeromq", "amqp"])
def test_a_run_gets_its_tables_from_spark(transport: str, nameless: Path) -> None:
    """Java wanted a name, and a home: `basedir must be absolute`."""
    if transport == "amqp":
        need_rabbitmq()
    words = ("run", "--transport", transport, "--orders", 500, "--rate", 1000, "--spark", "--name", "run")
    done = run_nameless(nameless, *words)
    assert done.code == 0, done.err
    assert "no tables" not in done.err
    assert (nameless / "results" / "run" / "tables" / "sample_seconds.parquet").exists(), done.err
    assert not list((nameless / "scratch").glob("exchange-spark-*"))


def test_the_tables_of_many_runs_are_made_and_asked(nameless: Path) -> None:
    assert run_nameless(nameless, "run", "--orders", 500, "--rate", 1000, "--name", "run").code == 0
    ingested = run_nameless(nameless, "spark", "ingest", "results")
    assert ingested.code == 0, ingested.err
    summary = run_nameless(nameless, "spark", "summary", "results")
    assert summary.code == 0, summary.err
    answer = run_nameless(nameless, "spark", "sql", "select count(*) as runs from summary", "--csv")
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[-1] == "1"


def test_a_simulation_runs_on_spark(nameless: Path) -> None:
    done = run_nameless(nameless, "simulate", "--instruments", 4, "--orders", 1000)
    assert done.code == 0, done.err
