"""`exchange simulate` on Spark has the result of one process, and leaves nothing behind if it fails."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from exchange_simulation.experiments.simulate import on_spark
from tests.exchange_command import FinishedCommand, command, exchange
from tests.exchange_simulation.experiments.simulate.sample_simulations import events, result_of, rows, simulated
from tests.machine import PATIENCE_S, until

MARKET = ("--instruments", 6, "--orders", 20_001, "--seed", 11, "--trades", "--quotes")
ENDLESS = ("--instruments", 1000, "--orders", "1e11", "--trades", "--name", "x")


def simulated_on(master: str, results: Path, *words: object) -> FinishedCommand:
    """Run `exchange simulate` on a Spark master, in a process of its own."""
    words_of_command = command("simulate", "--json", "--results", results, "--master", master, *words)
    finished = subprocess.run(words_of_command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return FinishedCommand(finished.returncode, finished.stdout, finished.stderr)


def assert_same_result_as_one_process(master: str, tmp_path: Path) -> None:
    in_process = simulated(tmp_path, *MARKET, "--name", "process").record
    on_master = simulated_on(master, tmp_path, *MARKET, "--partitions", 4, "--name", "spark").record
    assert result_of(on_master) == result_of(in_process)
    assert rows(tmp_path / "spark") == rows(tmp_path / "process")
    for table in ("trades", "quotes"):
        assert events(tmp_path / "spark", table) == events(tmp_path / "process", table)
        assert on_master["events"][table]["rows"] == in_process["events"][table]["rows"]
    assert on_master["events"]["trades"]["files"] == 4
    assert sorted(path.name for path in (tmp_path / "spark" / "market").iterdir()) == ["quotes", "trades"]


@pytest.mark.jvm
def test_a_local_master_has_the_result_of_one_process(tmp_path: Path) -> None:
    assert_same_result_as_one_process("local[2]", tmp_path)


@pytest.mark.long
def test_executors_in_processes_have_the_result_of_one_process(tmp_path: Path) -> None:
    assert_same_result_as_one_process("local-cluster[2,1,1024]", tmp_path)


def test_progress_does_not_fall_when_later_jobs_have_fewer_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    finished = iter([3, 50, 1, 2])
    reported: list[int] = []
    monkeypatch.setattr(on_spark, "finished_partitions", lambda _spark: next(finished, 0))
    monkeypatch.setattr(on_spark, "LOOK_EVERY_S", 0.001)
    with on_spark._counting_partitions(object(), reported.append):
        until(lambda: len(reported) > 3, "four reports")
    assert reported[:4] == [3, 50, 50, 50]


@pytest.fixture
def start_endless(tmp_path: Path) -> Iterator[Any]:
    """A function that starts a simulation of many hours, and returns its process once events were written."""
    processes: list[subprocess.Popen[str]] = []
    (tmp_path / "scratch").mkdir()

    def start(master: str) -> subprocess.Popen[str]:
        words = command("simulate", "--results", tmp_path / "results", "--master", master, *ENDLESS)
        environment = {**os.environ, "TMPDIR": str(tmp_path / "scratch")}
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        processes.append(process)
        until(lambda: list((tmp_path / "results").glob("x/market/.simulated-*/**/part-*")), "files of trades")
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("master", "number"),
    [
        ("none", signal.SIGINT),
        pytest.param("none", signal.SIGTERM, marks=pytest.mark.long),
        pytest.param("local[2]", signal.SIGINT, marks=pytest.mark.long),
        pytest.param("local[2]", signal.SIGTERM, marks=pytest.mark.long),
    ],
)
def test_an_interrupted_simulation_says_so_and_leaves_nothing(
    master: str, number: signal.Signals, start_endless: Any, tmp_path: Path
) -> None:
    process = start_endless(master)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    _, error_output = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    last_line = error_output.splitlines()[-1]
    assert last_line == "Error: interrupted: a simulation is kept as a whole, or not at all"
    assert_all_end(children)
    assert list((tmp_path / "results").iterdir()) == []
    assert list((tmp_path / "scratch").iterdir()) == []


def assert_all_end(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, PATIENCE_S)
    assert alive == []


@pytest.mark.long
def test_a_killed_simulation_leaves_no_process_and_no_result(start_endless: Any, tmp_path: Path) -> None:
    process = start_endless("local[2]")
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    assert_all_end(children)
    assert "unfinished" in exchange("results", "list", "--results", tmp_path / "results").out


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("spark://127.0.0.1:1", "no Spark master answers at spark://127.0.0.1:1 (127.0.0.1:1: Connection refused)"),
        ("spark://nowhere", "spark://nowhere is no address of a Spark master: give spark://HOST:PORT"),
        pytest.param("lokal[2]", "check the master's address", marks=pytest.mark.long),
    ],
)
def test_a_wrong_master_gets_an_error_and_leaves_nothing(master: str, message: str, tmp_path: Path) -> None:
    finished = simulated(tmp_path, *MARKET, "--master", master)
    assert finished.code == 2
    assert message in finished.err
    assert "Traceback" not in finished.err
    assert list(tmp_path.iterdir()) == []
