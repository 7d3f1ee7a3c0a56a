"""A run is over when it is over: its outcome and page are there before Spark begins, and Spark cannot change them."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.exchange_command import command, exchange_in_process
from tests.spark.fake_java import java_that, leaves_its_pipe_open

WITHOUT_SPARK = ("run", "--transport", "memory", "--rate", "1000", "--orders", "500", "--name", "first")
WORDS = (*WITHOUT_SPARK, "--spark")
NO_MEMORY = "echo no memory >&2; exit 1"


@leaves_its_pipe_open
@pytest.mark.parametrize("given", [(), pytest.param(("--json",), marks=pytest.mark.long)])
def test_a_failure_of_spark_comes_after_the_page_and_changes_no_exit_code(
    tmp_path: Path, given: tuple[str, ...]
) -> None:
    outcome = exchange_in_process(*WORDS, *given, "--results", tmp_path, **java_that(NO_MEMORY, tmp_path / "java"))
    assert outcome.code == 0, outcome
    assert "not all tables are made: Spark's JVM did not start (no memory)" in outcome.err
    assert "page: " in (outcome.err if given else outcome.out)
    assert (tmp_path / "first" / "report.html").exists()
    assert (tmp_path / "first" / "tables" / "seconds.parquet").exists()
    assert "Traceback" not in outcome.err


@leaves_its_pipe_open
def test_quiet_says_nothing_of_spark_but_what_went_wrong(tmp_path: Path) -> None:
    outcome = exchange_in_process(*WORDS, "-q", "--results", tmp_path, **java_that(NO_MEMORY, tmp_path / "java"))
    assert outcome.code == 0, outcome
    assert [line for line in outcome.err.splitlines() if "not all tables are made: " not in line] == []


def test_ctrl_c_leaves_out_the_tables_of_a_run_whose_page_is_there(tmp_path: Path) -> None:
    environ = {**os.environ, **java_that("exec sleep 60", tmp_path / "java")}
    outcome = ""
    with subprocess.Popen(
        command(*WORDS, "--results", tmp_path), env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        assert run.stdout is not None
        while "making the tables" not in outcome:
            line = run.stdout.readline()
            assert line, outcome
            outcome += line
        assert f"page: {tmp_path / 'first' / 'report.html'}" in outcome
        run.send_signal(signal.SIGINT)
        outcome += run.stdout.read()
    assert run.returncode == 0, outcome
    assert (
        f"not all tables are made: interrupted; make them with: exchange report {tmp_path / 'first'} --spark" in outcome
    )
    assert "Traceback" not in outcome


def test_a_run_starts_no_jvm_unless_asked(tmp_path: Path) -> None:
    started = tmp_path / "java-was-started"
    java = java_that(f"touch {started}; exit 1", tmp_path / "java")
    outcome = exchange_in_process(*WITHOUT_SPARK, "--results", tmp_path, **java)
    assert outcome.code == 0, outcome
    assert not started.exists()
    assert not (tmp_path / "first" / "tables").exists()


@leaves_its_pipe_open
def test_the_environment_can_ask_for_spark(tmp_path: Path) -> None:
    java = java_that(NO_MEMORY, tmp_path / "java")
    outcome = exchange_in_process(*WITHOUT_SPARK, "--results", tmp_path, EXCHANGE_SPARK="1", **java)
    assert "not all tables are made: Spark's JVM did not start" in outcome.err
