"""Runs the `exchange` command as a user does: a process, its output, its exit code, what it leaves behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from tests.machine import PATIENCE_S, until


@dataclass(frozen=True)
class FinishedCommand:
    """The exit code and output of a command that has ended."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> dict[str, Any]:
        """The JSON object on stdout."""
        return json.loads(self.out)


IN_PROCESS_COMMANDS = {"results", "report", "tape", "match"}
"""Commands that start no process, except `results rerun`."""


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "exchange_simulation.cli", *map(str, words)]


def exchange(*words: object, **env: str) -> FinishedCommand:
    """Run a command to its end. `env` has variables in addition to those of this process.

    It runs in a new process. For speed, a command that starts no process and needs no `env` runs in this process.
    """
    starts_no_process = words[0] in IN_PROCESS_COMMANDS and "rerun" not in words
    if starts_no_process and not env:
        return exchange_in_process(*words)
    finished = subprocess.run(
        command(*words), capture_output=True, text=True, timeout=PATIENCE_S, env={**os.environ, **env}, check=False
    )
    return FinishedCommand(finished.returncode, finished.stdout, finished.stderr)


def run_exchange(results: Path, *words: object) -> FinishedCommand:
    """Run `exchange run --json` without a page and without Spark's tables."""
    return exchange("run", "--json", "--no-spark", "--no-page", "--results", results, *words)


def run_exchange_in_process(results: Path, *words: object) -> FinishedCommand:
    """Run `exchange run --json` in this process, by default over memory.

    Use this only for a transport whose components are threads of one process.
    """
    if "--transport" not in words:
        words = ("--transport", "memory", *words)
    return exchange_in_process("run", "--json", "--no-spark", "--no-page", "--results", results, *words)


def match_in_process(tape: Path, answers: Path) -> dict[str, Any]:
    """Run `exchange match` in this process; return its record."""
    return exchange_in_process("match", tape, "--answers", answers, "--json").record


def exchange_in_process(*words: object, **env: str) -> FinishedCommand:
    """Run a command in this process. Use it for commands that are refused, or that run all components as threads."""
    finished = CliRunner().invoke(main, [str(word) for word in words], env=env)
    if finished.exception and not isinstance(finished.exception, SystemExit):
        raise finished.exception
    return FinishedCommand(finished.exit_code, finished.stdout, finished.stderr)


VALID_STATUSES = {"complete", "saturated"}
"""Statuses that a test accepts: on a busy machine a run may be saturated without losing anything."""

ORDERS = 10_000
ORDER_STREAM = ("--orders", ORDERS, "--seed", 7)
REFERENCE_RUN = ("--rate", "max", *ORDER_STREAM)
"""Options of the run whose checksums are in the fixture `match_record`."""


@pytest.fixture(scope="session")
def match_record(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The record that `exchange match` prints for a tape of ORDER_STREAM."""
    tape = tmp_path_factory.mktemp("tape") / "tape.bin"
    assert exchange_in_process("tape", *ORDER_STREAM, "--output", tape).code == 0
    return match_in_process(tape, tape.with_name("answers.bin"))


class Running:
    """An `exchange run --json --no-spark` under way."""

    def __init__(self, results: Path, *words: object) -> None:
        self.results = results
        self.scratch = results.parent / "scratch"
        self.scratch.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            command("run", "--json", "--no-spark", "--results", results, *words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(self.scratch)},
        )

    def wait_until_under_way(self) -> Running:
        """Wait for the first file in the spool, by which orders are sent. Returns this run.

        AssertionError, with the run's own words, if it has ended before.
        """
        until(self._has_spool, "a spool file")
        return self

    def _has_spool(self) -> bool:
        has_spool = any(self.results.glob("*/spool/*.jsonl"))
        if not has_spool and self._process.poll() is not None:
            raise AssertionError(f"the run ended before it was under way: {self.finish().err}")
        return has_spool

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return next(self.results.glob("*"))

    def component(self, role: str) -> psutil.Process:
        """Wait for the process of the component; return it."""
        return until(lambda: self._find(role), f"the {role}'s process")

    def _find(self, role: str) -> psutil.Process | None:
        for child in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended meanwhile
                if role in child.cmdline():
                    return child
        return None

    def family(self) -> list[psutil.Process]:
        """Return the run's child processes: the watchdog and the components."""
        return psutil.Process(self._process.pid).children(recursive=True)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def finish(self) -> FinishedCommand:
        out, err = self._process.communicate(timeout=PATIENCE_S)
        return FinishedCommand(self._process.returncode, out, err)

    def clear_up(self) -> None:
        """Kill the run if its test has not ended it."""
        if self._process.poll() is None:
            self._process.kill()
            self.finish()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Yield a function that starts a run. Every run ends with its test."""
    started: list[Running] = []

    def start(*words: object) -> Running:
        started.append(Running(tmp_path / "results", *words))
        return started[-1]

    yield start
    for run in started:
        run.clear_up()


def processes_with_scratch(scratch: Path) -> list[psutil.Process]:
    """Return the processes that live and have this folder for temporary files: a command's own, and all below it."""
    members = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            is_zombie = process.status() == psutil.STATUS_ZOMBIE
            if not is_zombie and process.environ().get("TMPDIR") == str(scratch):
                members.append(process)
    return members


def listening_port(process: psutil.Process) -> int:
    """Return the TCP port that a component listens on; 0 if there is none."""
    for connection in process.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN:
            return connection.laddr.port
    return 0
