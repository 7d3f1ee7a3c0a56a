"""`exchange spark live` and `exchange run --live-spark` as a user types them: what they say, and what they leave."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from exchange_simulation.launching.files import whole_file
from tests.exchange_command import command, exchange_in_process, run_exchange_in_process
from tests.machine import PATIENCE_S, until
from tests.spark.fake_java import JAVA_17, fake_java


class Started:
    """A command under way; what it says on stderr goes into a file, and it has temporary files of its own."""

    def __init__(self, folder: Path, *words: object) -> None:
        self._said, self.scratch = folder / "said", folder / "scratch"
        self.scratch.mkdir()
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                command(*words), stdout=subprocess.DEVNULL, stderr=said, env={**os.environ, "TMPDIR": str(self.scratch)}
            )

    def said(self) -> str:
        return self._said.read_text()

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self._process.pid).children(recursive=True)

    def ended_by(self, number: signal.Signals) -> int:
        """Its exit code, once nobody of its family is left."""
        family = self.family()
        self._process.send_signal(number)
        assert psutil.wait_procs(family, PATIENCE_S)[1] == []
        return self._process.wait(PATIENCE_S)

    def ended(self) -> int:
        """Its exit code."""
        return self._process.wait(PATIENCE_S)

    def clean_up(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    started: list[Started] = []

    def start(*words: object) -> Started:
        started.append(Started(tmp_path, *words))
        return started[-1]

    yield start
    for each in started:
        each.clean_up()


@pytest.mark.jvm
def test_runs_are_followed_as_they_come_until_ctrl_c(tmp_path: Path, start: Callable[..., Started]) -> None:
    results = tmp_path / "results"
    run_exchange_in_process(results, "--name", "first", "--rate", "2000", "--orders", "1000")
    spool = sorted((results / "first" / "spool").iterdir())
    said_by_first = b"".join(file.read_bytes() for file in spool).splitlines(keepends=True)
    looking = start("spark", "live", results)
    going = results / "going"
    (going / "spool").mkdir(parents=True)
    until(lambda: "first: 1 second, " in looking.said(), "the first run's end")
    with whole_file(going / "spool" / "000001.jsonl") as file:
        file.write(b"".join(said_by_first[:-1]))
    until((going / "live" / "notes" / "000000.json").exists, "a batch of the second run")
    assert looking.ended_by(signal.SIGINT) == 130
    said = looking.said()
    assert "first: second 0, sent " in said
    assert "0 of them late; 0 said twice, 0 lines unread\n" in said
    assert "going: 1 second" in said
    assert "the closing record has not come" in said
    assert "Traceback" not in said
    assert list(looking.scratch.iterdir()) == []


@pytest.mark.jvm
def test_a_run_with_a_query_beside_it_is_a_run_and_its_table_is_whole(
    tmp_path: Path, start: Callable[..., Started]
) -> None:
    words = ("--rate", "1000", "--orders", "2000", "--no-spark", "--no-page", "--name", "run", "--results", tmp_path)
    run = start("run", "--live-spark", "--transport", "memory", *words)
    assert run.ended() == 0, run.said()
    is_whole = "the live table is not whole" not in run.said()  # a machine may be too busy for its last rows
    assert ("run: second 1, sent " in run.said()) >= is_whole
    assert "0 said twice, 0 lines unread" in run.said()
    assert list(run.scratch.iterdir()) == []


@pytest.mark.jvm
def test_of_a_run_whose_launcher_is_killed_no_query_is_left(tmp_path: Path, start: Callable[..., Started]) -> None:
    run = start("run", "--live-spark", "--rate", "1000", "--duration", "60", "--results", tmp_path / "results")
    until(lambda: any("java" in process.name() for process in run.family()), "the JVM")
    assert run.ended_by(signal.SIGKILL) == -signal.SIGKILL
    until(lambda: list(run.scratch.iterdir()) == [], "an empty folder of temporary files")


def test_without_spark_the_run_goes_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    java = fake_java(tmp_path / "java", JAVA_17)
    java.write_text(f"#!/bin/sh\n[ \"$1\" = -version ] && echo '{JAVA_17}' >&2 && exit\necho no memory >&2\nexit 1\n")
    words = ("--rate", "1000", "--orders", "500", "--no-spark", "--no-page", "--results", tmp_path / "results")
    said = exchange_in_process("run", "--live-spark", "--transport", "memory", *words, JAVA_HOME=str(tmp_path / "java"))
    assert said.code == 0, said
    assert "Spark's JVM did not start (no memory)" in capfd.readouterr().err, "the process with the query says so"
    assert "the run goes on without" in said.err
    assert "Traceback" not in said.err


def test_a_folder_without_runs_is_nothing_to_look_at_once(tmp_path: Path) -> None:
    said = exchange_in_process("spark", "live", tmp_path, "--once")
    assert said.code == 2
    assert "holds no run that has begun" in said.err
