"""`exchange spark live` and `exchange run --live-spark` as a user types them: their output, and no leftovers."""

from __future__ import annotations

import os
import signal
import subprocess
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import psutil
import pytest

from exchange_simulation.experiments.pipeline.live_beside_run import WARM_S
from exchange_simulation.launching.files import whole_file
from tests.exchange_command import command, exchange_in_process, run_exchange_in_process
from tests.machine import PATIENCE_S, until
from tests.spark.fake_java import JAVA_17, fake_java, java_that


class StartedCommand:
    """A command under way. Its stderr goes into a file, and its temporary files into the folder `scratch`."""

    def __init__(self, folder: Path, *words: object) -> None:
        self._error_file = folder / "stderr"
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        with self._error_file.open("wb") as error_file:
            self._process = subprocess.Popen(
                command(*words),
                stdout=subprocess.DEVNULL,
                stderr=error_file,
                env={**os.environ, "TMPDIR": str(self.scratch)},
            )

    def error_output(self) -> str:
        return self._error_file.read_text()

    def family(self) -> list[psutil.Process]:
        """All processes below the command's process."""
        return psutil.Process(self._process.pid).children(recursive=True)

    def exit_code_after(self, number: signal.Signals) -> int:
        """Send a signal, wait until all processes of the command have ended, and return its exit code."""
        family = self.family()
        self._process.send_signal(number)
        _, alive = psutil.wait_procs(family, PATIENCE_S)
        assert alive == []
        return self._process.wait(PATIENCE_S)

    def exit_code(self) -> int:
        """Wait for the command's end, and return its exit code."""
        return self._process.wait(PATIENCE_S)

    def clean_up(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., StartedCommand]]:
    started: list[StartedCommand] = []

    def start(*words: object) -> StartedCommand:
        started.append(StartedCommand(tmp_path, *words))
        return started[-1]

    yield start
    for started_command in started:
        started_command.clean_up()


@pytest.mark.jvm
def test_new_runs_are_followed_until_ctrl_c(tmp_path: Path, start: Callable[..., StartedCommand]) -> None:
    results = tmp_path / "results"
    run_exchange_in_process(results, "--name", "first", "--rate", "2000", "--orders", "1000")
    spool = sorted((results / "first" / "spool").iterdir())
    lines_of_first_run = b"".join(file.read_bytes() for file in spool).splitlines(keepends=True)
    without_closing_record = lines_of_first_run[:-1]
    live = start("spark", "live", results)
    second_run = results / "second_run"
    (second_run / "spool").mkdir(parents=True)
    until(lambda: "first: 1 second, " in live.error_output(), "the first run's end")
    with whole_file(second_run / "spool" / "000001.jsonl") as file:
        file.write(b"".join(without_closing_record))
    until((second_run / "live" / "state.json").exists, "a batch of the second run")
    assert live.exit_code_after(signal.SIGINT) == 130
    output = live.error_output()
    assert "first: second 0, sent " in output
    assert "0 of them late; 0 said twice, 0 lines unread\n" in output
    assert "second_run: 1 second" in output
    assert "the closing record has not come" in output
    assert "Traceback" not in output
    assert list(live.scratch.iterdir()) == []


@pytest.mark.jvm
def test_a_run_with_a_live_query_is_recorded_and_says_if_its_table_is_not_whole(
    tmp_path: Path, start: Callable[..., StartedCommand]
) -> None:
    words = ("--rate", "1000", "--orders", "2000", "--no-page", "--name", "run", "--results", tmp_path)
    run = start("run", "--live-spark", "--transport", "memory", *words)
    assert run.exit_code() == 0, run.error_output()
    has_last_second = "run: second 1, sent " in run.error_output()
    says_what_lacks = "the live table is not whole" in run.error_output()  # on a busy machine rows may come too late
    assert has_last_second or says_what_lacks
    assert "0 said twice, 0 lines unread" in run.error_output()
    assert list(run.scratch.iterdir()) == []


@pytest.mark.jvm
def test_no_query_is_left_if_the_launcher_is_killed(tmp_path: Path, start: Callable[..., StartedCommand]) -> None:
    run = start("run", "--live-spark", "--rate", "1000", "--duration", "60", "--results", tmp_path / "results")
    until(lambda: any("java" in process.name() for process in run.family()), "the JVM")
    assert run.exit_code_after(signal.SIGKILL) == -signal.SIGKILL
    until(lambda: list(run.scratch.iterdir()) == [], "an empty folder of temporary files")


def test_a_run_goes_on_if_its_query_does_not_start(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    java = fake_java(tmp_path / "java", JAVA_17)
    script = f"""\
        #!/bin/sh
        [ "$1" = -version ] && echo '{JAVA_17}' >&2 && exit
        echo no memory >&2
        exit 1
        """
    java.write_text(textwrap.dedent(script))
    words = ("--rate", "1000", "--orders", "500", "--no-page", "--results", tmp_path / "results")
    finished = exchange_in_process(
        "run", "--live-spark", "--transport", "memory", *words, JAVA_HOME=str(tmp_path / "java")
    )
    assert finished.code == 0, finished
    assert "Spark's JVM did not start (no memory)" in capfd.readouterr().err, "the process with the query says so"
    assert "the run goes on without" in finished.err
    assert "Traceback" not in finished.err


def test_a_signal_while_the_query_gets_ready_ends_the_run(
    tmp_path: Path, start: Callable[..., StartedCommand], monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun = tmp_path / "has begun"
    for name, value in java_that(f"touch '{has_begun}'; exec sleep 1000", tmp_path / "java").items():
        monkeypatch.setenv(name, value)
    run = start("run", "--live-spark", "--rate", "1000", "--orders", "500", "--results", tmp_path / "results")
    until(has_begun.exists, "the start of Java")
    signal_s = time.monotonic()
    assert run.exit_code_after(signal.SIGINT) == 130
    assert time.monotonic() - signal_s < WARM_S, "the run waited until the query was given up"
    [record] = (tmp_path / "results").glob("*/run.json")
    assert orjson.loads(record.read_bytes())["reasons"][0] == "interrupted before the start"
    assert list(run.scratch.iterdir()) == []


def test_a_folder_without_runs_is_refused_with_the_option_once(tmp_path: Path) -> None:
    finished = exchange_in_process("spark", "live", tmp_path, "--once")
    assert finished.code == 2
    assert "holds no run that has begun" in finished.err
