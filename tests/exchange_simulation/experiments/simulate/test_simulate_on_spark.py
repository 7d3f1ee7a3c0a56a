"""`exchange simulate` on Spark: the very result of one process, and its end whatever happens."""

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
from tests.exchange_simulation.experiments.simulate.sample_simulations import events, rows, same, simulated
from tests.machine import PATIENCE_S, until

MARKET = ("--instruments", 6, "--orders", 20_001, "--seed", 11, "--trades", "--quotes")
ENDLESS = ("--instruments", 1000, "--orders", "1e11", "--trades", "--name", "x")


def on_master(master: str, results: Path, *words: object) -> FinishedCommand:
    asked = command("simulate", "--json", "--results", results, "--master", master, *words)
    done = subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return FinishedCommand(done.returncode, done.stdout, done.stderr)


def as_here(master: str, tmp_path: Path) -> None:
    here = simulated(tmp_path, *MARKET, "--name", "here").record
    there = on_master(master, tmp_path, *MARKET, "--partitions", 4, "--name", "there").record
    assert same(here, there)
    assert rows(tmp_path / "here") == rows(tmp_path / "there")
    for table in ("trades", "quotes"):
        assert events(tmp_path / "here", table) == events(tmp_path / "there", table)
        assert there["events"][table]["rows"] == here["events"][table]["rows"]
    assert there["events"]["trades"]["files"] == 4
    assert sorted(path.name for path in (tmp_path / "there" / "market").iterdir()) == ["quotes", "trades"]


@pytest.mark.jvm
def test_a_local_master_gives_what_one_process_gives(tmp_path: Path) -> None:
    as_here("local[2]", tmp_path)


@pytest.mark.long
def test_executors_in_own_processes_give_what_one_process_gives(tmp_path: Path) -> None:
    as_here("local-cluster[2,1,1024]", tmp_path)


def test_progress_does_not_go_back_when_the_files_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, said = iter([3, 50, 1, 2]), []
    monkeypatch.setattr(on_spark, "finished_partitions", lambda _spark: next(numbers, 0))
    monkeypatch.setattr(on_spark, "LOOK_EVERY_S", 0.001)
    with on_spark._counting_parts(object(), said.append):
        until(lambda: len(said) > 3, "four looks")
    assert said[:4] == [3, 50, 50, 50]


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Any]:
    """Start one that takes hours; its process, once there are orders under way."""
    started: list[subprocess.Popen[str]] = []
    (tmp_path / "scratch").mkdir()

    def start(master: str) -> subprocess.Popen[str]:
        asked = command("simulate", "--results", tmp_path / "results", "--master", master, *ENDLESS)
        environ = {**os.environ, "TMPDIR": str(tmp_path / "scratch")}
        one = subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)
        started.append(one)
        until(lambda: list((tmp_path / "results").glob("x/market/.simulated-*/**/part-*")), "trades under way")
        return one

    yield start
    for one in started:
        one.kill()
        one.communicate()


@pytest.mark.parametrize(
    ("master", "number"),
    [
        ("none", signal.SIGINT),
        pytest.param("none", signal.SIGTERM, marks=pytest.mark.long),
        pytest.param("local[2]", signal.SIGINT, marks=pytest.mark.long),
        pytest.param("local[2]", signal.SIGTERM, marks=pytest.mark.long),
    ],
)
def test_one_that_is_interrupted_says_so_and_leaves_nothing(
    master: str, number: signal.Signals, endless: Any, tmp_path: Path
) -> None:
    one = endless(master)
    family = psutil.Process(one.pid).children(recursive=True)
    one.send_signal(number)
    _, said = one.communicate(timeout=PATIENCE_S)
    assert (one.returncode, said.splitlines()[-1]) == (1, INTERRUPTED)
    assert psutil.wait_procs(family, PATIENCE_S)[1] == []
    assert list((tmp_path / "results").iterdir()) == []
    assert list((tmp_path / "scratch").iterdir()) == []


INTERRUPTED = "Error: interrupted: a simulation is kept as a whole, or not at all"


@pytest.mark.long
def test_a_killed_simulation_leaves_no_process_and_no_result(endless: Any, tmp_path: Path) -> None:
    one = endless("local[2]")
    family = psutil.Process(one.pid).children(recursive=True)
    one.kill()
    assert psutil.wait_procs(family, PATIENCE_S)[1] == []
    assert "unfinished" in exchange("results", "list", "--results", tmp_path / "results").out


@pytest.mark.parametrize(
    ("master", "told"),
    [
        ("spark://127.0.0.1:1", "no Spark master answers at spark://127.0.0.1:1 (127.0.0.1:1: Connection refused)"),
        ("spark://nowhere", "spark://nowhere is no address of a Spark master: give spark://HOST:PORT"),
        pytest.param("lokal[2]", "check the master's address", marks=pytest.mark.long),
    ],
)
def test_a_master_that_is_none_is_a_sentence_and_leaves_nothing(master: str, told: str, tmp_path: Path) -> None:
    said = simulated(tmp_path, *MARKET, "--master", master)
    assert said.code == 2
    assert told in said.err
    assert "Traceback" not in said.err
    assert list(tmp_path.iterdir()) == []
